// Client quotas: how many bytes a client may produce and consume a second, and how much of the
// broker's time it may take.
//
// Who has which quota stands in the catalog, by user, client id, both, or default entities; the
// most specific entity with the quota counts, in Kafka's order. What a client has used is kept in a
// bucket for each entity that a quota is measured for, on one shard whatever the client's
// connection: it fills at the quota's rate and holds what may be used in (quota.window.num - 1)
// windows of quota.window.size.seconds, the time over which Kafka averages.
//
// Who uses more is answered at once and told for how long to stay away, and its connection is not
// read for that time (KIP-219).
#pragma once
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/catalog.h"
#include "protocol/base/clock.h"

namespace broker {

class Broker;
class Shard;

enum class QuotaKind { produce, fetch, request };

// Kafka's name of the quota: producer_byte_rate, consumer_byte_rate, request_percentage.
std::string_view quota_name(QuotaKind kind);

// What one client may use of one kind.
struct Quota {
  // Units a second: bytes, or nanoseconds of a thread.
  double rate = 0;
  // Clients with the same one share what it allows.
  std::string bucket;
};
// The quota that counts for a client; nothing: it has none.
std::optional<Quota> find_quota(const QuotaTable& table, QuotaKind kind, const std::string& user,
                                const std::string& client_id);

// The arithmetic of one bucket. Pure.
class QuotaBucket {
 public:
  using Time = base::Clock::time_point;
  // Full at first. `window`: what it holds, in time.
  void settle(double rate, std::chrono::duration<double> window, Time now);
  void take(double amount) { level_ -= amount; }
  // How long until it is out of debt.
  std::chrono::duration<double> debt() const;
  bool full() const { return level_ >= capacity_; }

 private:
  double rate_ = 0, capacity_ = 0, level_ = 0;
  Time at_;
};

class ClientQuotas {
 public:
  explicit ClientQuotas(Broker& broker);

  // Any shard. Whether anybody has a quota.
  bool any(const Shard& shard) const;
  // The client's, if it has one of the kind.
  std::optional<Quota> find(const Shard& shard, QuotaKind kind, const std::string& user,
                            const std::string& client_id) const;
  // Takes the amount from the quota and answers for how long the client is to stay away then. An
  // amount of 0 only looks.
  boost::asio::awaitable<std::chrono::milliseconds> charge(QuotaKind kind, Quota quota,
                                                           double amount);
  // The most that one answer may hold, so that it is paid off within the window.
  double window_amount(const Quota& quota) const { return quota.rate * window_.count(); }

 private:
  using Buckets = std::unordered_map<std::string, QuotaBucket>;
  std::chrono::duration<double> take(Buckets& buckets, const std::string& key, double rate,
                                     double amount) const;

  Broker& broker_;
  std::chrono::duration<double> window_, request_throttle_max_;
  std::vector<std::unique_ptr<Buckets>> of_shards_;  // each touched by its shard only
};

}  // namespace broker
