// The pure parts: sessions, batch checks, settings, filters, state records.
#include <catch2/catch.hpp>

#include "mirror/fetch_session.h"
#include "mirror/fetched_batches.h"
#include "mirror/mirror_config.h"
#include "mirror/state_codec.h"
#include "mirror/topic_filter.h"
#include "tests/unit/mirror_drivers/fake_source.h"

using namespace mirror;

namespace {

FetchWish wish(const std::string& topic, std::int32_t partition, base::Offset offset) {
  return {.topic = topic,
          .source_topic_id = {},
          .partition = partition,
          .offset = offset,
          .log_start = 0,
          .last_epoch = {},
          .source_epoch = {}};
}

std::size_t partitions_in(const protocol::FetchRequest& request) {
  std::size_t n = 0;
  for (const auto& topic : request.topics) n += topic.partitions.size();
  return n;
}

protocol::FetchRequest next_request(FetchSession& session) {
  protocol::FetchRequest request;
  session.fill(request, false);
  return request;
}

protocol::FetchResponse response_of(std::int32_t session_id, protocol::ErrorCode error) {
  protocol::FetchResponse response;
  response.session_id = session_id;
  response.error_code = static_cast<std::int16_t>(error);
  return response;
}

}  // namespace

TEST_CASE("a fetch session names only what changed") {
  FetchSession session(1000);
  for (int p = 0; p < 4; ++p) session.want(wish("t", p, 0), nullptr);
  protocol::FetchRequest first = next_request(session);
  CHECK(first.session_id == 0);
  CHECK(first.session_epoch == 0);
  CHECK(partitions_in(first) == 4);
  CHECK(session.accept(response_of(7, protocol::ErrorCode::none)));

  protocol::FetchRequest second = next_request(session);
  CHECK(second.session_id == 7);
  CHECK(second.session_epoch == 1);
  CHECK(partitions_in(second) == 0);
  CHECK(session.accept(response_of(7, protocol::ErrorCode::none)));

  session.want(wish("t", 2, 10), nullptr);
  session.drop("t", 3);
  protocol::FetchRequest third = next_request(session);
  CHECK(partitions_in(third) == 1);
  CHECK(third.topics[0].partitions[0].fetch_offset == 10);
  REQUIRE(third.forgotten_topics_data.size() == 1);
  CHECK(third.forgotten_topics_data[0].partitions == std::vector<std::int32_t>{3});
  CHECK(session.accept(response_of(7, protocol::ErrorCode::none)));

  SECTION("dropped and wished again before the source heard of it: only named") {
    session.drop("t", 2);
    session.want(wish("t", 2, 11), nullptr);
    const protocol::FetchRequest request = next_request(session);
    CHECK(partitions_in(request) == 1);
    CHECK(request.forgotten_topics_data.empty());
  }
  SECTION("a lost session begins anew with all") {
    static_cast<void>(next_request(session));
    CHECK_FALSE(session.accept(response_of(0, protocol::ErrorCode::fetch_session_id_not_found)));
    const protocol::FetchRequest request = next_request(session);
    CHECK(request.session_id == 0);
    CHECK(request.session_epoch == 0);
    CHECK(partitions_in(request) == 3);
    CHECK(request.forgotten_topics_data.empty());
  }
  SECTION("a refused session: the data counts, and all are named each time") {
    FetchSession other(1000);
    other.want(wish("t", 0, 0), nullptr);
    static_cast<void>(next_request(other));
    CHECK(other.accept(response_of(0, protocol::ErrorCode::none)));
    CHECK(partitions_in(next_request(other)) == 1);
  }
  SECTION("what is wished while a request is under way is not answered by it") {
    static_cast<void>(next_request(session));
    session.want(wish("t", 0, 99), nullptr);
    protocol::FetchResponse::Response answer;
    answer.topic = "t";
    CHECK(session.find(answer, 0) == nullptr);
    CHECK(session.find(answer, 1) != nullptr);
    CHECK(session.accept(response_of(7, protocol::ErrorCode::none)));
    CHECK(partitions_in(next_request(session)) == 1);
    CHECK(session.find(answer, 0) != nullptr);
  }
}

TEST_CASE("full requests begin with another partition each time") {
  FetchSession session(1000);
  for (int p = 0; p < 3; ++p) session.want(wish("t", p, 0), nullptr);
  std::set<std::int32_t> first;
  for (int i = 0; i < 12; ++i) {
    first.insert(next_request(session).topics[0].partitions[0].partition);
    CHECK(session.accept(response_of(0, protocol::ErrorCode::none)));
  }
  CHECK(first.size() == 3);
}

TEST_CASE("fetched batches are checked") {
  using mirror_test::make_batch;
  const auto join = [](std::initializer_list<base::Buffer> parts) {
    base::Buffer all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  SECTION("gaps are legal, and the tail may be cut") {
    base::Buffer bytes = join({make_batch(10, 2, 1).bytes, make_batch(50, 1, 1).bytes});
    const std::size_t whole = bytes.size();
    const base::Buffer cut = make_batch(51, 1, 1).bytes;
    bytes.insert(bytes.end(), cut.begin(), cut.begin() + 40);
    const FetchedBatches out = check_fetched(bytes, 10, false, 1);
    CHECK(out.problem.empty());
    CHECK(out.bytes.size() == whole);
    CHECK(out.next_offset == 51);
    CHECK(out.last_epoch == 1);
  }
  SECTION("the first may straddle the fetch offset of an empty log only") {
    const base::Buffer bytes = make_batch(10, 5, 1).bytes;
    CHECK(check_fetched(bytes, 12, true, {}).problem.empty());
    CHECK_FALSE(check_fetched(bytes, 12, false, {}).problem.empty());
    CHECK_FALSE(check_fetched(bytes, 15, true, {}).problem.empty());
  }
  SECTION("epochs must not fall") {
    CHECK_FALSE(check_fetched(make_batch(10, 1, 3).bytes, 10, false, 4).problem.empty());
    CHECK(check_fetched(make_batch(10, 1, 4).bytes, 10, false, 4).problem.empty());
  }
  SECTION("nothing and half a header are nothing") {
    const FetchedBatches nothing = check_fetched({}, 10, false, 4);
    CHECK(nothing.problem.empty());
    CHECK(nothing.bytes.empty());
    CHECK(nothing.next_offset == 10);
    const base::Buffer bytes = make_batch(10, 1, 4).bytes;
    CHECK(check_fetched(base::Bytes(bytes).first(20), 10, false, 4).bytes.empty());
  }
}

TEST_CASE("settings of a mirror") {
  const auto parse = [](ConfigMap configs) {
    configs.emplace("bootstrap.servers", "h:1");
    return parse_mirror_config(configs);
  };
  CHECK(parse({}).outcome.ok());
  CHECK(parse_mirror_config({}).outcome.error == control_error::invalid_config);
  const ParsedConfig two = parse({{"bootstrap.servers", "a:1, [::1]:9092"}});
  REQUIRE(two.config.bootstrap.size() == 2);
  CHECK(two.config.bootstrap[1].host == "::1");
  CHECK(two.config.bootstrap[1].to_string() == "[::1]:9092");
  for (const char* bad : {"host", "host:", ":9", "host:0", "host:70000", "::1:9092", ","})
    CHECK_FALSE(parse({{"bootstrap.servers", bad}}).outcome.ok());
  CHECK_FALSE(parse({{"fetch.max.bytes", "0"}}).outcome.ok());
  CHECK_FALSE(parse({{"fetch.max.bytes", "1x"}}).outcome.ok());
  CHECK_FALSE(parse({{"security.protocol", "SASL_SSL"}}).outcome.ok());
  CHECK(parse({{"topics.include", "a(b"}}).outcome.error ==
        control_error::invalid_regular_expression);
  CHECK(shorten_names({{"mirror.fetch.max.bytes", "1"}}).contains("fetch.max.bytes"));
  CHECK(is_valid_mirror_name("a.B_c-1"));
  for (const char* bad : {"", ".", "..", "a b", "ä"}) CHECK_FALSE(is_valid_mirror_name(bad));
  CHECK_FALSE(is_valid_mirror_name(std::string(250, 'a')));
}

TEST_CASE("topic filters match whole names, in RE2's dialect") {
  const TopicFilter filter{PatternList({"orders", "log-.*"}), PatternList({"log-debug"})};
  CHECK(filter.includes("orders"));
  CHECK_FALSE(filter.includes("orders2"));
  CHECK(filter.includes("log-a"));
  CHECK_FALSE(filter.includes("log-debug"));
  CHECK_FALSE(PatternList().matches("a"));
  CHECK_FALSE(PatternList({"(?=a)"}).problem().empty());  // no look-ahead
  CHECK_FALSE(PatternList({"(a)\\1"}).problem().empty());
  CHECK(PatternList({quote_name("a.b")}).matches("a.b"));
  CHECK_FALSE(PatternList({quote_name("a.b")}).matches("aXb"));
  CHECK(PatternList({"a|b", "c"}).matches("b"));
  CHECK(split_list(" a, ,b ,") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("state records survive, and their partition is Java's") {
  PartitionKey key{"m", {*base::Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ"), 3}};
  // String.hashCode() of "m:AAAAAAAAAAAAAAAAAAAAAQ:3", by hand with wrapping 32-bit arithmetic.
  std::int32_t hash = 0;
  for (const char c : std::string("m:AAAAAAAAAAAAAAAAAAAAAQ:3"))
    hash = static_cast<std::int32_t>(static_cast<std::uint32_t>(hash) * 31u +
                                     static_cast<std::uint32_t>(c));
  CHECK(state_partition_of(key, 50) == std::abs(hash) % 50);

  StoredState state;
  state.record.state = MirrorState::failed;
  state.record.previous_state = MirrorState::mirroring;
  state.record.retry_attempt = -1;
  state.record.error = "why";
  state.record.position = Position{std::nullopt, 0};
  state.record.skipped = SkippedRange{4, 9};
  state.leader_epoch = 12;
  state.state_epoch = 3;
  const auto records = encode_state(key, state, false);
  REQUIRE(records.size() == 2);
  const auto first = decode_state(records[0].key, base::Bytes(*records[0].value));
  const auto* change = std::get_if<StateChange>(&first);
  REQUIRE(change != nullptr);
  CHECK(change->key == key);
  REQUIRE(change->state);
  CHECK(change->state->record.error == "why");
  CHECK(change->state->record.retry_attempt == -1);
  CHECK(change->state->record.skipped == state.record.skipped);
  CHECK(change->state->leader_epoch == 12);
  const auto second = decode_state(records[1].key, base::Bytes(*records[1].value));
  const auto* position = std::get_if<PositionChange>(&second);
  REQUIRE(position != nullptr);
  CHECK(position->position == state.record.position);

  state.record.position.reset();
  CHECK(encode_state(key, state, false).size() == 1);
  CHECK_FALSE(encode_state(key, state, true)[1].value);
  const auto tombstones = encode_forgotten(key);
  REQUIRE(tombstones.size() == 2);
  const auto gone = decode_state(tombstones[0].key, std::nullopt);
  REQUIRE(std::get_if<StateChange>(&gone) != nullptr);
  CHECK_FALSE(std::get<StateChange>(gone).state);
  const base::Buffer noise(3, std::byte{9});
  const StateRecordChange unreadable = decode_state(noise, std::nullopt);
  CHECK(std::holds_alternative<Unreadable>(unreadable));
}
