// Two brokers that mirror each other's topic, one after the other: failover, failback, and the loop
// that must not be.
#include "tests/unit/broker/two_brokers.h"

namespace broker::test {
namespace {

std::size_t common_bytes(const base::Buffer& a, const base::Buffer& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

TEST_CASE("failback copies what is new and nothing of what both sides have (E40)") {
  Side a, b;
  a.broker().create("events");
  for (int i = 0; i < 30; ++i) REQUIRE(a.produce("events", 10) == 0);
  b.create_mirror("dr", a, "events");
  b.await_copied("dr");
  const base::Buffer shared = a.bytes("events");
  CHECK(b.bytes("events") == shared);

  b.stop_mirror("dr");
  REQUIRE(a.produce("events", 3) == 0);  // never mirrored: lost by the failover
  REQUIRE(b.produce("events", 5) == 0);
  const base::Buffer after = b.bytes("events");
  REQUIRE(common_bytes(after, shared) == shared.size());
  REQUIRE(common_bytes(a.bytes("events"), after) < after.size());

  a.create_mirror("back", b, "events");
  a.await_copied("back");
  CHECK(a.bytes("events") == after);
  // No byte of the shared part went over the wire again.
  CHECK(a.partition("back").bytes_copied == after.size() - shared.size());

  // And there again: the way back is the same.
  a.stop_mirror("back");
  REQUIRE(a.produce("events", 2) == 0);
  const base::Buffer newest = a.bytes("events");
  const std::uint64_t copied = b.partition("dr").bytes_copied;
  b.start_mirror("dr");
  b.await_copied("dr");
  CHECK(b.bytes("events") == newest);
  CHECK(b.partition("dr").bytes_copied - copied == newest.size() - after.size());
}

TEST_CASE("a mirror loop is refused, and the topic's producers do not notice (E21)") {
  Side a, b;
  a.broker().create("events");
  REQUIRE(a.produce("events", 10) == 0);
  b.create_mirror("dr", a, "events");
  b.await_copied("dr");
  a.create_mirror("back", b, "events");
  std::string said;
  await([&] {
    said = a.topic("back").error_message.value_or("");
    return !said.empty();
  });
  CHECK(said.starts_with("Detected mirror loop for mirror: "));
  CHECK(a.topic("back").partitions.empty());
  CHECK(a.produce("events") == 0);
  b.await_copied("dr");
  await([&] { return a.bytes("events") == b.bytes("events"); });

  // While the mirror there is STOPPED it may go the other way.
  b.stop_mirror("dr");
  a.await_copied("back");
  CHECK(a.bytes("events") == b.bytes("events"));

  // The side that begins second is refused also when the topic belongs to its mirror already.
  b.start_mirror("dr");
  await([&] { return b.partition("dr").state == "FAILED"; });
  CHECK(b.partition("dr").retry_attempt == -1);
  CHECK(b.partition("dr").error_message.value_or("").starts_with(
      "Detected mirror loop for mirror: "));
  CHECK(a.partition("back").state == "MIRRORING");
}

}  // namespace broker::test
