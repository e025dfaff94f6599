// Failing and full disks under a whole broker: what clients are told, and how it comes back.
#include <cerrno>
#include <thread>

#include "protocol/error_code.h"
#include "tests/unit/broker/locked_files.h"
#include "tests/unit/broker/two_brokers.h"

namespace broker::test {
namespace {

using storage_test::DiskCall;
using storage_test::FaultFileSystem;

constexpr auto storage_error = static_cast<std::int16_t>(protocol::ErrorCode::kafka_storage_error);

// Calls of this kind fail for files whose path holds `part`.
void fail(LockedFiles& files, DiskCall call, const std::string& part, int number) {
  files.with([&](FaultFileSystem& inner) {
    inner.fault = [=](DiskCall made, const std::string& path) {
      if (made != call || path.find(part) == std::string::npos) return base::Error{};
      return base::Error{number, boost::system::system_category()};
    };
  });
}

void mend(LockedFiles& files) {
  files.with([](FaultFileSystem& inner) {
    inner.fault = nullptr;
    inner.capacity_bytes = std::uint64_t{1} << 40;
  });
}

// So much can still be written.
void leave(LockedFiles& files, std::uint64_t bytes) {
  files.with([&](FaultFileSystem& inner) {
    const std::uint64_t used = inner.capacity_bytes - *inner.free_bytes("");
    inner.capacity_bytes = used + bytes;
  });
}

const std::vector<std::string> fast_retries = {"mirror.failed.retry.initial.backoff.ms=20",
                                               "mirror.failed.retry.max.backoff.ms=200"};

}  // namespace

TEST_CASE("a failed sync is told to everybody who waited for it, and never tried again") {
  LockedFiles files(1);
  Side side({}, files);
  side.broker().create("events");
  side.broker().create("other");
  REQUIRE(side.produce("events", 3) == 0);
  const base::Buffer acknowledged = side.bytes("events");

  fail(files, DiskCall::sync, "/events-0/", EIO);
  std::vector<std::int16_t> told(4);
  {
    std::vector<std::jthread> producers;  // some share a sync, some come while it runs
    for (std::int16_t& error : told)
      producers.emplace_back([&side, &error] { error = side.produce("events"); });
  }
  CHECK(told == std::vector<std::int16_t>(4, storage_error));
  mend(files);  // the disk is well again, but what it lost is not
  CHECK(side.produce("events") == storage_error);
  std::this_thread::sleep_for(1500ms);  // nor after the broker had time to look at it
  CHECK(side.produce("events") == storage_error);
  // Others go on, and what was acknowledged is served.
  CHECK(side.produce("other") == 0);
  const base::Buffer served = side.bytes("events");
  REQUIRE(served.size() >= acknowledged.size());
  CHECK(std::equal(acknowledged.begin(), acknowledged.end(), served.begin()));

  SECTION("a restart brings it back") {
    side.stop();
  }
  SECTION("so does one after a power cut, with all that was acknowledged") {
    side.stop();
    files.with([](FaultFileSystem& inner) { inner.power_cut(); });
  }
  side.start();
  const base::Buffer left = side.bytes("events");
  REQUIRE(left.size() >= acknowledged.size());
  CHECK(std::equal(acknowledged.begin(), acknowledged.end(), left.begin()));
  CHECK(side.produce("events") == 0);
}

TEST_CASE("G06: a full disk refuses writes, serves reads, lets delete, and recovers alone") {
  LockedFiles files(2);
  Side side({}, files);
  side.broker().create("events");
  const TopicPtr ballast = side.broker().create("ballast");
  const std::string value(1000, 'v');
  for (int i = 0; i < 40; ++i) REQUIRE(side.produce("ballast", 10, value) == 0);
  REQUIRE(side.produce("events") == 0);
  leave(files, 100'000);
  int written = 0;
  while (side.produce("events", 1, value) == 0) REQUIRE(++written < 200);
  CHECK(written > 10);
  CHECK(side.produce("events", 1, value) == storage_error);
  CHECK_FALSE(side.bytes("events").empty());
  CHECK_FALSE(side.bytes("ballast").empty());
  REQUIRE(side.broker()
              .run([&] { return side.broker()->catalog().delete_topic(ballast->id); })
              .has_value());
  await([&] { return side.produce("events", 1, value) == 0; });
}

TEST_CASE("G06: the reserve is left for what must still be written") {
  LockedFiles files(3);
  Side side({"calque.disk.reserve.bytes=60000"}, files);
  side.broker().create("events");
  leave(files, 100'000);
  const std::string value(1000, 'v');
  int written = 0;
  while (side.produce("events", 1, value) == 0) REQUIRE(++written < 200);
  CHECK(files.with([](FaultFileSystem& inner) { return *inner.free_bytes(""); }) > 50'000);
  mend(files);
  await([&] { return side.produce("events", 1, value) == 0; });
}

TEST_CASE("G06: a log whose new segment found no space is opened again by itself") {
  LockedFiles files(4);
  Side side({"log.segment.bytes=20000"}, files);
  side.broker().create("events");
  const std::string value(1000, 'v');
  REQUIRE(side.produce("events", 10, value) == 0);
  fail(files, DiskCall::open, "/events-0/", ENOSPC);
  int written = 0;
  while (side.produce("events", 1, value) == 0) REQUIRE(++written < 30);
  CHECK(side.produce("events", 1, value) == storage_error);
  const base::Buffer before = side.bytes("events");
  mend(files);
  await([&] { return side.produce("events", 1, value) == 0; });
  const base::Buffer after = side.bytes("events");
  REQUIRE(after.size() > before.size());
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
}

TEST_CASE("a mirrored partition whose log fails is FAILED, the others go on") {
  Side source;
  source.broker().create("events");
  source.broker().create("other");
  REQUIRE(source.produce("events", 10) == 0);
  REQUIRE(source.produce("other", 10) == 0);
  LockedFiles files(5);
  Side copy(fast_retries, files);
  copy.create_mirror("dr", source, "events,other");
  copy.await_copied("dr", "events");
  copy.await_copied("dr", "other");

  SECTION("for good after a failed sync, until the broker is started again") {
    fail(files, DiskCall::sync, "/events-0/", EIO);
    REQUIRE(source.produce("events", 5) == 0);
    await([&] { return copy.partition("dr", "events").state == "FAILED"; });
    const auto now = copy.partition("dr", "events");
    CHECK_FALSE(now.lag);
    CHECK(now.retry_attempt > 0);
    INFO(now.error_message.value_or(""));
    CHECK(now.error_message.value_or("").find("offline") != std::string::npos);
    mend(files);
    REQUIRE(source.produce("other", 5) == 0);
    await([&] { return copy.bytes("other") == source.bytes("other"); });
    std::this_thread::sleep_for(1500ms);
    CHECK_FALSE(copy.partition("dr", "events").lag == 0);
    copy.stop();
    files.with([](FaultFileSystem& inner) { inner.power_cut(); });
    copy.start();
  }
  SECTION("while the disk is full, and then not any more") {
    leave(files, 30'000);
    const std::string value(1000, 'v');
    for (int i = 0; i < 10; ++i) REQUIRE(source.produce("events", 10, value) == 0);
    await([&] { return copy.partition("dr", "events").state == "FAILED"; });
    CHECK(copy.partition("dr", "events").retry_attempt > 0);
    std::this_thread::sleep_for(500ms);
    mend(files);
  }
  await([&] { return copy.bytes("events") == source.bytes("events"); });
  copy.await_copied("dr", "events");
  copy.await_copied("dr", "other");
  CHECK(copy.bytes("other") == source.bytes("other"));
  CHECK_FALSE(copy.partition("dr", "events").error_message);
}

}  // namespace broker::test
