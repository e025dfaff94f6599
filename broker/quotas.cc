#include "broker/quotas.h"

#include <algorithm>
#include <cmath>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/shard.h"

namespace broker {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::string_view user_type = "user";
constexpr std::string_view client_type = "client-id";
constexpr double nanoseconds_per_percent = 1e9 / 100;

// One step of Kafka's order: which names the entity has, and who shares its bucket.
struct Level {
  enum Name { none, exact, standard };
  Name user, client;
  bool by_user, by_client;
};
constexpr Level levels[] = {
    {Level::exact, Level::exact, true, true},       {Level::exact, Level::standard, true, true},
    {Level::exact, Level::none, true, false},       {Level::standard, Level::exact, true, true},
    {Level::standard, Level::standard, true, true}, {Level::standard, Level::none, true, false},
    {Level::none, Level::exact, false, true},       {Level::none, Level::standard, false, true},
};

void add(storage::QuotaEntity& entity, std::string_view type, Level::Name kind,
         const std::string& name) {
  if (kind == Level::none) return;
  std::optional<std::string>& slot = entity[std::string(type)];
  if (kind == Level::exact) slot = name;
}

}  // namespace

std::string_view quota_name(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::produce:
      return "producer_byte_rate";
    case QuotaKind::fetch:
      return "consumer_byte_rate";
    case QuotaKind::request:
      return "request_percentage";
  }
  return "";
}

std::optional<Quota> find_quota(const QuotaTable& table, QuotaKind kind, const std::string& user,
                                const std::string& client_id) {
  const std::string name(quota_name(kind));
  for (const Level& level : levels) {
    storage::QuotaEntity entity;
    add(entity, user_type, level.user, user);
    add(entity, client_type, level.client, client_id);
    const auto found = table.find(entity);
    if (found == table.end()) continue;
    const auto value = found->second.find(name);
    if (value == found->second.end()) continue;
    Quota quota;
    quota.rate = value->second * (kind == QuotaKind::request ? nanoseconds_per_percent : 1);
    quota.bucket = name;
    quota.bucket += level.by_user ? '\1' + user : std::string("\2");
    quota.bucket += level.by_client ? '\1' + client_id : std::string("\2");
    return quota;
  }
  return std::nullopt;
}

void QuotaBucket::settle(double rate, Seconds window, Time now) {
  if (rate_ == 0) {
    level_ = rate * window.count();
  } else {
    // What came in meanwhile, at the rate that held; the quota may have been changed.
    level_ += rate_ * Seconds(now - at_).count();
  }
  rate_ = rate;
  capacity_ = rate * window.count();
  level_ = std::min(level_, capacity_);
  at_ = now;
}

Seconds QuotaBucket::debt() const {
  return Seconds(level_ >= 0 ? 0 : -level_ / rate_);
}

ClientQuotas::ClientQuotas(Broker& broker) : broker_(broker) {
  const std::int64_t size_s = broker.config().integer("quota.window.size.seconds");
  const std::int64_t count = broker.config().integer("quota.window.num");
  request_throttle_max_ = std::chrono::seconds(size_s);
  window_ = std::chrono::seconds(size_s * std::max<std::int64_t>(1, count - 1));
  for (std::size_t i = 0; i < broker.shard_count(); ++i)
    of_shards_.push_back(std::make_unique<Buckets>());
}

std::optional<Quota> ClientQuotas::find(const Shard& shard, QuotaKind kind, const std::string& user,
                                        const std::string& client_id) const {
  return find_quota(shard.catalog()->quotas(), kind, user, client_id);
}

bool ClientQuotas::any(const Shard& shard) const {
  return !shard.catalog()->quotas().empty();
}

Seconds ClientQuotas::take(Buckets& buckets, const std::string& key, double rate,
                           double amount) const {
  const auto now = base::Clock::now();
  if (buckets.size() >= quota_buckets_max && !buckets.contains(key))
    // One that is full says no more than one that is not there.
    std::erase_if(buckets, [](const auto& one) { return one.second.full(); });
  QuotaBucket& bucket = buckets[key];
  bucket.settle(rate, window_, now);
  bucket.take(amount);
  return bucket.debt();
}

boost::asio::awaitable<std::chrono::milliseconds> ClientQuotas::charge(QuotaKind kind, Quota quota,
                                                                       double amount) {
  const std::size_t index = std::hash<std::string>{}(quota.bucket) % of_shards_.size();
  auto run = [this, index, &quota, amount]() -> boost::asio::awaitable<Seconds> {
    co_return take(*of_shards_[index], quota.bucket, quota.rate, amount);
  };
  const Seconds debt = co_await on(broker_.shard(index), std::move(run));
  const Seconds most = kind == QuotaKind::request ? request_throttle_max_ : window_;
  const Seconds throttle = std::min(debt, most);
  co_return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::ceil(throttle.count() * 1000)));
}

}  // namespace broker
