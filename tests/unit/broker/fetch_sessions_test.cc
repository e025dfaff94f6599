// Fetch sessions without a broker: what a session remembers, and who gives way to whom.
#include "broker/fetch_sessions.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

namespace broker::test {
namespace {

using protocol::ErrorCode;

constexpr std::int64_t second_ms = 1000;
constexpr std::int64_t grown_up_ms = 121 * second_ms;

FetchSessions sessions(std::size_t count, std::size_t partitions = 1000) {
  return FetchSessions(0, 1, {count, partitions}, base::Random(1));
}

std::vector<FetchTarget> targets(std::size_t count, const std::string& topic = "t") {
  std::vector<FetchTarget> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].topic = topic;
    all[i].partition = static_cast<std::int32_t>(i);
  }
  return all;
}

std::vector<FetchOutcome> outcomes(std::size_t count, base::Offset high_watermark = 0) {
  FetchOutcome one;
  one.high_watermark = high_watermark;
  one.log_start = 0;
  return std::vector<FetchOutcome>(count, one);
}

std::int32_t create(FetchSessions& in, std::size_t size, std::int64_t now_ms,
                    bool privileged = false) {
  return in.create(targets(size), outcomes(size), false, privileged, now_ms);
}

bool is_there(FetchSessions& in, std::int32_t id) {
  // A wrong epoch changes nothing.
  return in.resume(id, 77, false, {}, {}, 0).error == ErrorCode::invalid_fetch_session_epoch;
}

std::vector<std::int32_t> partitions_of(const std::vector<FetchTarget>& all) {
  std::vector<std::int32_t> found;
  for (const FetchTarget& one : all) found.push_back(one.partition);
  return found;
}

}  // namespace

TEST_CASE("a session's id tells the shard, and none is taken twice") {
  std::set<std::int32_t> seen;
  for (std::size_t shard = 0; shard < 3; ++shard) {
    FetchSessions here(shard, 3, {100, 1000}, base::Random(7));
    for (int i = 0; i < 100; ++i) {
      const std::int32_t id = create(here, 1, 0);
      REQUIRE(id > 0);
      CHECK(FetchSessions::shard_of(id, 3) == shard);
      CHECK(seen.insert(id).second);
    }
  }
  CHECK(!FetchSessions::shard_of(0, 3));
  CHECK(!FetchSessions::shard_of(-1, 3));
}

TEST_CASE("an incremental request names what changed and hears what changed") {
  FetchSessions all = sessions(10);
  const std::int32_t id = create(all, 3, 0);
  // Nothing named: all three are read, none is told of.
  auto resumed = all.resume(id, 1, false, {}, {}, 1);
  REQUIRE(resumed.error == ErrorCode::none);
  CHECK(partitions_of(resumed.targets) == std::vector{0, 1, 2});
  CHECK(all.finish(id, 1, outcomes(3)) == std::vector{false, false, false});

  std::vector<FetchTarget> changed = targets(1);
  changed[0].offset = 9;
  changed[0].bytes_max = 100;
  changed.push_back(targets(4).back());
  resumed = all.resume(id, 2, false, changed, {}, 2);
  CHECK(partitions_of(resumed.targets) == std::vector{0, 1, 2, 3});
  CHECK(resumed.targets[0].offset == 9);
  CHECK(resumed.targets[0].bytes_max == 100);
  CHECK(resumed.targets[1].offset == 0);
  std::vector<FetchOutcome> found = outcomes(4);
  found[1].high_watermark = 5;  // grew
  found[2].log_start = 1;       // trimmed
  CHECK(all.finish(id, 2, found) == std::vector{false, true, true, true});
  // Told once; the fourth is known by now, too.
  resumed = all.resume(id, 3, false, {}, {}, 3);
  CHECK(all.finish(id, 3, found) == std::vector{false, false, false, false});

  found[0].diverging = true;
  resumed = all.resume(id, 4, false, {}, {}, 4);
  CHECK(all.finish(id, 4, found) == std::vector{true, false, false, false});

  resumed = all.resume(id, 5, false, {}, {targets(2)[1], targets(9)[8]}, 5);
  CHECK(partitions_of(resumed.targets) == std::vector{0, 2, 3});
  CHECK(all.partitions() == 3);
}

TEST_CASE("a partition whose read failed is told of until it was told to be well (A24)") {
  FetchSessions all = sessions(10);
  const std::int32_t id = create(all, 3, 0);
  std::vector<FetchOutcome> failed = outcomes(3);
  failed[1] = FetchOutcome();
  failed[1].error = true;
  for (std::int32_t epoch = 1; epoch <= 3; ++epoch) {
    const auto resumed = all.resume(id, epoch, false, {}, {}, 0);
    CHECK(all.finish(id, epoch, failed) == std::vector{false, true, false});
  }
  auto resumed = all.resume(id, 4, false, {}, {}, 0);
  CHECK(all.finish(id, 4, outcomes(3)) == std::vector{false, true, false});
  resumed = all.resume(id, 5, false, {}, {}, 0);
  CHECK(all.finish(id, 5, outcomes(3)) == std::vector{false, false, false});
}

TEST_CASE("who had records has to wait for the others") {
  FetchSessions all = sessions(10);
  const std::int32_t id = create(all, 4, 0);
  std::vector<FetchOutcome> found = outcomes(4);
  found[0].records = found[2].records = true;
  auto resumed = all.resume(id, 1, false, {}, {}, 0);
  CHECK(all.finish(id, 1, found) == std::vector{true, false, true, false});
  resumed = all.resume(id, 2, false, {}, {}, 0);
  CHECK(partitions_of(resumed.targets) == std::vector{1, 3, 0, 2});
  // All of them: the order stays.
  for (FetchOutcome& one : found) one.records = true;
  REQUIRE(all.finish(id, 2, found));
  resumed = all.resume(id, 3, false, {}, {}, 0);
  CHECK(partitions_of(resumed.targets) == std::vector{1, 3, 0, 2});
}

TEST_CASE("session errors") {
  FetchSessions all = sessions(10);
  const std::int32_t id = create(all, 2, 0);
  CHECK(all.resume(id + 1, 1, false, {}, {}, 0).error == ErrorCode::fetch_session_id_not_found);
  CHECK(all.resume(id, 2, false, {}, {}, 0).error == ErrorCode::invalid_fetch_session_epoch);
  CHECK(all.resume(id, 1, true, {}, {}, 0).error == ErrorCode::fetch_session_topic_id_error);
  // None of them did harm.
  const auto first = all.resume(id, 1, false, {}, {}, 0);
  REQUIRE(first.error == ErrorCode::none);
  // The same once more, as after a lost answer.
  CHECK(all.resume(id, 1, false, {}, {}, 0).error == ErrorCode::invalid_fetch_session_epoch);
  // Another request came in between.
  REQUIRE(all.resume(id, 2, false, {}, {}, 0).error == ErrorCode::none);
  CHECK(!all.finish(id, 1, outcomes(2)));
  all.close(id);
  CHECK(all.resume(id, 3, false, {}, {}, 0).error == ErrorCode::fetch_session_id_not_found);
  // Displaced while it was read: the answer is complete, the next request is not found.
  CHECK(all.finish(id, 2, outcomes(2)) == std::vector{true, true});
}

TEST_CASE("a session without partitions ends") {
  FetchSessions all = sessions(10);
  const std::int32_t id = create(all, 2, 0);
  const auto resumed = all.resume(id, 1, false, targets(1), targets(2), 0);
  CHECK(resumed.error == ErrorCode::none);
  CHECK(resumed.ended);
  CHECK(partitions_of(resumed.targets) == std::vector{0});  // what was asked is still answered
  CHECK(all.size() == 0);
  CHECK(all.partitions() == 0);
}

TEST_CASE("by topic id the name is learned once and kept") {
  FetchSessions all = sessions(10);
  std::vector<FetchTarget> asked(2);
  asked[0].topic_id.bytes[0] = std::byte{1};
  asked[1].topic_id.bytes[0] = std::byte{2};
  asked[1].topic = "known";
  const std::int32_t id = all.create(asked, outcomes(2), true, false, 0);
  auto resumed = all.resume(id, 1, true, {}, {}, 0);
  CHECK(resumed.targets[0].topic.empty());
  CHECK(resumed.targets[1].topic == "known");
  REQUIRE(all.finish(id, 1, outcomes(2), {{0, "learned"}}));
  // A request names ids only, and still means the same partition.
  std::vector<FetchTarget> again(1);
  again[0].topic_id = asked[1].topic_id;
  again[0].offset = 3;
  resumed = all.resume(id, 2, true, again, {}, 0);
  REQUIRE(resumed.targets.size() == 2);
  CHECK(resumed.targets[0].topic == "learned");
  CHECK(resumed.targets[1].topic == "known");
  CHECK(resumed.targets[1].offset == 3);
}

TEST_CASE("a full cache refuses, but for sessions that nobody uses") {
  FetchSessions none = sessions(0);
  CHECK(create(none, 1, 0) == 0);

  FetchSessions all = sessions(2);
  const std::int32_t a = create(all, 5, 0);
  const std::int32_t b = create(all, 5, 0);
  CHECK(create(all, 100, 120 * second_ms) == 0);  // both are protected by their youth
  REQUIRE(all.resume(b, 1, false, {}, {}, 100 * second_ms).error == ErrorCode::none);
  const std::int32_t c = create(all, 1, grown_up_ms);  // `a` was not used for 121 s
  CHECK(c != 0);
  CHECK(!is_there(all, a));
  CHECK(is_there(all, b));
  CHECK(all.size() == 2);
  CHECK(all.partitions() == 6);
}

TEST_CASE("a larger session displaces a smaller one that has had its time") {
  FetchSessions all = sessions(2);
  const std::int32_t small = create(all, 2, 0);
  const std::int32_t large = create(all, 9, 0);
  // Both in use, and old by now.
  REQUIRE(all.resume(small, 1, false, {}, {}, grown_up_ms).error == ErrorCode::none);
  REQUIRE(all.resume(large, 1, false, {}, {}, grown_up_ms).error == ErrorCode::none);
  CHECK(create(all, 1, grown_up_ms) == 0);
  CHECK(create(all, 2, grown_up_ms) == 0);  // not larger
  CHECK(create(all, 3, grown_up_ms) != 0);
  CHECK(!is_there(all, small));
  CHECK(is_there(all, large));
  // The newcomer is protected for a while.
  CHECK(create(all, 4, grown_up_ms) == 0);
}

TEST_CASE("a replica displaces consumers at once, never the other way round") {
  FetchSessions all = sessions(2);
  const std::int32_t replica = create(all, 1, 0, true);
  const std::int32_t consumer = create(all, 50, 0);
  const std::int32_t other = create(all, 1, 1, true);
  CHECK(other != 0);
  CHECK(!is_there(all, consumer));
  CHECK(create(all, 99, 1) == 0);
  CHECK(create(all, 99, 1, true) == 0);  // two young replicas
  REQUIRE(all.resume(replica, 1, false, {}, {}, grown_up_ms).error == ErrorCode::none);
  REQUIRE(all.resume(other, 1, false, {}, {}, grown_up_ms).error == ErrorCode::none);
  CHECK(create(all, 99, grown_up_ms) == 0);
  CHECK(create(all, 99, grown_up_ms, true) != 0);
}

TEST_CASE("partitions are bounded over all sessions") {
  FetchSessions all = sessions(10, 6);
  CHECK(create(all, 7, 0) == 0);
  const std::int32_t id = create(all, 4, 0);
  REQUIRE(id != 0);
  CHECK(create(all, 3, 0) == 0);
  CHECK(create(all, 2, 0) != 0);
  // One that grows beyond the bound is ended: the client begins anew, without a session.
  const auto grown = all.resume(id, 1, false, targets(1, "another"), {}, 0);
  CHECK(grown.error == ErrorCode::fetch_session_id_not_found);
  CHECK(all.partitions() == 2);
}

TEST_CASE("epochs of a session go on at 1 after the largest") {
  FetchSessions all = sessions(1);
  const std::int32_t id = create(all, 1, 0);
  // A session that lives so long cannot be waited for: a thousand requests stand for the rest.
  for (std::int32_t epoch = 1; epoch <= 1000; ++epoch) {
    const auto resumed = all.resume(id, epoch, false, {}, {}, 0);
    REQUIRE(resumed.error == ErrorCode::none);
    REQUIRE(all.finish(id, epoch, outcomes(1)));
  }
  CHECK(FetchSessions::next_epoch(1000) == 1001);
  CHECK(FetchSessions::next_epoch(std::numeric_limits<std::int32_t>::max()) == 1);
}

}  // namespace broker::test
