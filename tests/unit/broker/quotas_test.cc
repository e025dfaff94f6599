// Client quotas: who has which, the arithmetic, and what a connection feels of it.
#include "broker/quotas.h"
#include "tests/unit/broker/admin_client.h"

namespace broker::test::admin {

TEST_CASE("the most specific quota counts, in Kafka's order") {
  using Entity = storage::QuotaEntity;
  const Entity both = {{"user", "u"}, {"client-id", "c"}};
  const Entity user_any = {{"user", "u"}, {"client-id", std::nullopt}};
  const Entity user = {{"user", "u"}};
  const Entity any_client = {{"user", std::nullopt}, {"client-id", "c"}};
  const Entity any_any = {{"user", std::nullopt}, {"client-id", std::nullopt}};
  const Entity any_user = {{"user", std::nullopt}};
  const Entity client = {{"client-id", "c"}};
  const Entity default_client = {{"client-id", std::nullopt}};
  const std::vector<Entity> order = {both,    user_any, user,   any_client,
                                     any_any, any_user, client, default_client};
  QuotaTable table;
  for (std::size_t i = order.size(); i-- > 0;) {
    table[order[i]]["producer_byte_rate"] = static_cast<double>(i + 1);
    const auto found = find_quota(table, QuotaKind::produce, "u", "c");
    REQUIRE(found);
    CHECK(found->rate == static_cast<double>(i + 1));
  }
  CHECK(!find_quota(table, QuotaKind::fetch, "u", "c"));
  // Who shares what: two clients of a user one bucket, two of a default client each its own.
  table = {{user, {{"producer_byte_rate", 1}}}};
  CHECK(find_quota(table, QuotaKind::produce, "u", "c")->bucket ==
        find_quota(table, QuotaKind::produce, "u", "d")->bucket);
  table = {{default_client, {{"producer_byte_rate", 1}}}};
  CHECK(find_quota(table, QuotaKind::produce, "u", "c")->bucket !=
        find_quota(table, QuotaKind::produce, "u", "d")->bucket);
  CHECK(find_quota(table, QuotaKind::produce, "u", "c")->bucket ==
        find_quota(table, QuotaKind::produce, "v", "c")->bucket);
}

TEST_CASE("a bucket lends a window and is paid back at the quota's rate") {
  using std::chrono::duration;
  QuotaBucket bucket;
  const auto start = base::Clock::now();
  const duration<double> window(10);
  bucket.settle(100, window, start);
  bucket.take(1000);
  CHECK(bucket.debt().count() == 0);
  bucket.take(500);
  CHECK(bucket.debt().count() == Approx(5));
  bucket.settle(100, window, start + std::chrono::seconds(3));
  CHECK(bucket.debt().count() == Approx(2));
  bucket.settle(100, window, start + std::chrono::seconds(1000));
  CHECK(bucket.debt().count() == 0);
  bucket.take(1001);  // no more than a window was saved
  CHECK(bucket.debt().count() == Approx(0.01));
  bucket.settle(10, window, start + std::chrono::seconds(1000));
  CHECK(bucket.debt().count() == Approx(0.1));
}

TEST_CASE("who is over a quota is answered first, told, and then not read for so long (KIP-219)") {
  Directory directory;
  Running broker(directory, {"quota.window.num=2"});
  Client client(broker.port());
  create(client, "events");
  Client admin(broker.port());
  REQUIRE(set_quota(admin, "client-id", "test", "producer_byte_rate", 10'000) == 0);

  std::int32_t throttle_ms = -1;
  const auto began = Clock::now();
  REQUIRE(produce(client, "events", std::string(12'000, 'x'), 0, &throttle_ms) == 0);
  const auto answered = Clock::now() - began;
  CHECK(throttle_ms > 100);
  CHECK(throttle_ms <= 1000);
  CHECK(answered < std::chrono::milliseconds(throttle_ms));
  REQUIRE(produce(client, "events", "x") == 0);
  CHECK(Clock::now() - began >= std::chrono::milliseconds(throttle_ms));
  // Nobody else is held up.
  Client other(broker.port());
  const auto others = Clock::now();
  fetch(other, "events", 0);
  CHECK(Clock::now() - others < std::chrono::milliseconds(500));

  // Without it there is no throttling.
  REQUIRE(set_quota(admin, "client-id", "test", "producer_byte_rate", std::nullopt) == 0);
  REQUIRE(produce(client, "events", std::string(50'000, 'x'), 0, &throttle_ms) == 0);
  CHECK(throttle_ms == 0);
}

TEST_CASE("consumers and requests have quotas as well, and they survive a restart") {
  Directory directory;
  {
    Running broker(directory, {"quota.window.num=2"});
    Client client(broker.port());
    create(client, "events");
    REQUIRE(produce(client, "events", std::string(30'000, 'x')) == 0);
    REQUIRE(set_quota(client, "user", std::nullopt, "consumer_byte_rate", 20'000) == 0);
  }
  Running broker(directory, {"quota.window.num=2"});
  Client client(broker.port());
  const auto first = fetch(client, "events", 0);
  CHECK(first.responses.at(0).partitions.at(0).records.bytes.size() > 30'000);
  CHECK(first.throttle_time_ms > 100);
  REQUIRE(set_quota(client, "user", std::nullopt, "consumer_byte_rate", std::nullopt) == 0);
  // A thousandth of a percent of a thread: any request is more than that allows.
  REQUIRE(set_quota(client, "client-id", "test", "request_percentage", 0.001) == 0);
  std::int32_t throttle_ms = 0;
  for (int i = 0; i < 10 && throttle_ms == 0; ++i) produce(client, "events", "x", 0, &throttle_ms);
  CHECK(throttle_ms > 0);
  CHECK(throttle_ms <= 1000);
}

}  // namespace broker::test::admin
