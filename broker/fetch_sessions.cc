#include "broker/fetch_sessions.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/base/check.h"

namespace broker {
namespace {

using protocol::ErrorCode;

// A session that was not used for so long may be displaced by anybody, and one that is younger is
// safe from newcomers of its own kind.
constexpr std::int64_t protected_ms = 120'000;

}  // namespace

std::size_t FetchTargetHash::operator()(const FetchTarget* target) const {
  const std::size_t topic = target->topic_id.is_zero() ? std::hash<std::string>()(target->topic)
                                                       : std::hash<base::Uuid>()(target->topic_id);
  return topic * 31 + static_cast<std::size_t>(target->partition);
}

FetchSessions::FetchSessions(std::size_t shard, std::size_t shard_count, Limits limits,
                             base::Random random)
    : shard_(shard), shard_count_(shard_count), limits_(limits), random_(random) {
  CHECK(shard < shard_count);
}

std::optional<std::size_t> FetchSessions::shard_of(std::int32_t id, std::size_t shard_count) {
  if (id <= 0) return std::nullopt;
  return static_cast<std::size_t>(id) % shard_count;
}

std::int32_t FetchSessions::next_epoch(std::int32_t epoch) {
  return epoch == std::numeric_limits<std::int32_t>::max() ? 1 : epoch + 1;
}

std::int32_t FetchSessions::fresh_id() {
  const auto numbers = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  for (;;) {
    const std::uint64_t n = random_.below(numbers / shard_count_) * shard_count_ + shard_;
    const auto id = static_cast<std::int32_t>(n);
    if (id > 0 && !sessions_.contains(id)) return id;
  }
}

void FetchSessions::add(Session& session, FetchTarget target, const FetchOutcome& outcome) {
  session.order.push_back({std::move(target), outcome.high_watermark, outcome.log_start});
  const auto at = std::prev(session.order.end());
  const bool added = session.places.emplace(&at->target, at).second;
  CHECK(added);
}

std::int32_t FetchSessions::create(const std::vector<FetchTarget>& targets,
                                   const std::vector<FetchOutcome>& outcomes, bool by_id,
                                   bool privileged, std::int64_t now_ms) {
  CHECK(targets.size() == outcomes.size());
  if (targets.size() > limits_.partitions) return 0;
  if (sessions_.size() >= limits_.sessions && !make_room(privileged, targets.size(), now_ms))
    return 0;
  while (partitions_ + targets.size() > limits_.partitions)
    if (!make_room(privileged, targets.size(), now_ms)) return 0;
  const std::int32_t id = fresh_id();
  Session& session = sessions_[id];
  session.id = id;
  session.epoch = 1;
  session.by_id = by_id;
  session.privileged = privileged;
  session.created_ms = session.used_ms = now_ms;
  for (std::size_t i = 0; i < targets.size(); ++i) add(session, targets[i], outcomes[i]);
  touch(session, now_ms);
  return session.id;
}

void FetchSessions::close(std::int32_t id) {
  const auto at = sessions_.find(id);
  if (at != sessions_.end()) remove(at->second);
}

FetchSessions::Resumed FetchSessions::resume(std::int32_t id, std::int32_t epoch, bool by_id,
                                             std::vector<FetchTarget> changed,
                                             const std::vector<FetchTarget>& forgotten,
                                             std::int64_t now_ms) {
  Resumed resumed;
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) {
    resumed.error = ErrorCode::fetch_session_id_not_found;
    return resumed;
  }
  Session& session = at->second;
  if (session.epoch != epoch) {
    resumed.error = ErrorCode::invalid_fetch_session_epoch;
    return resumed;
  }
  if (session.by_id != by_id) {
    resumed.error = ErrorCode::fetch_session_topic_id_error;
    return resumed;
  }
  if (partitions_ + changed.size() > limits_.partitions) {
    remove(session);  // the client begins anew, and is served without a session
    resumed.error = ErrorCode::fetch_session_id_not_found;
    return resumed;
  }
  for (const FetchTarget& target : changed) {
    const auto known = session.places.find(&target);
    if (known == session.places.end()) {
      add(session, target, FetchOutcome());
      continue;
    }
    FetchTarget& cached = known->second->target;
    cached.offset = target.offset;
    cached.bytes_max = target.bytes_max;
    cached.current_leader_epoch = target.current_leader_epoch;
    cached.last_fetched_epoch = target.last_fetched_epoch;
  }
  for (const FetchTarget& target : forgotten) {
    const auto known = session.places.find(&target);
    if (known == session.places.end()) continue;
    const auto place = known->second;
    session.places.erase(known);
    session.order.erase(place);
  }
  if (session.order.empty()) {
    remove(session);
    resumed.ended = true;
    resumed.targets = std::move(changed);
    return resumed;
  }
  touch(session, now_ms);
  session.epoch = next_epoch(session.epoch);
  resumed.targets.reserve(session.order.size());
  for (const Cached& one : session.order) resumed.targets.push_back(one.target);
  return resumed;
}

std::optional<std::vector<bool>> FetchSessions::finish(std::int32_t id, std::int32_t epoch,
                                                       const std::vector<FetchOutcome>& outcomes,
                                                       std::vector<Learned> learned) {
  const auto at = sessions_.find(id);
  // Displaced meanwhile: the client learns of it next time.
  if (at == sessions_.end()) return std::vector<bool>(outcomes.size(), true);
  Session& session = at->second;
  if (session.epoch != next_epoch(epoch)) return std::nullopt;
  CHECK(session.order.size() == outcomes.size());  // since its epoch is the same
  std::vector<bool> told(outcomes.size());
  auto place = session.order.begin();
  auto name = learned.begin();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto here = place++;
    Cached& cached = *here;
    const FetchOutcome& outcome = outcomes[i];
    for (; name != learned.end() && name->index == i; ++name)
      cached.target.topic = std::move(name->topic);
    told[i] = outcome.records || outcome.error || outcome.diverging ||
              cached.high_watermark != outcome.high_watermark ||
              cached.log_start != outcome.log_start;
    // After an error the partition is told of once more when the error has gone (A24).
    cached.high_watermark = outcome.error ? -1 : outcome.high_watermark;
    cached.log_start = outcome.log_start;
    // Who had records waits until the others had their turn.
    if (outcome.records) session.order.splice(session.order.end(), session.order, here);
  }
  return told;
}

bool FetchSessions::make_room(bool privileged, std::size_t size, std::int64_t now_ms) {
  if (by_use_.empty()) return false;
  const Used oldest = *by_use_.begin();
  if (now_ms - oldest.used_ms > protected_ms) {
    remove(sessions_.at(oldest.id));
    return true;
  }
  const std::set<Worth>& candidates = privileged ? for_privileged_ : for_all_;
  if (candidates.empty()) return false;
  const Worth least = *candidates.begin();
  if (Worth{privileged, size, 0} < least) return false;
  remove(sessions_.at(least.id));
  return true;
}

void FetchSessions::touch(Session& session, std::int64_t now_ms) {
  by_use_.erase({session.used_ms, session.id});
  session.used_ms = now_ms;
  by_use_.insert({now_ms, session.id});
  const Worth before{session.privileged, session.cached_size, session.id};
  for_all_.erase(before);
  for_privileged_.erase(before);
  partitions_ -= session.cached_size;
  session.cached_size = session.order.size();
  partitions_ += session.cached_size;
  const Worth after{session.privileged, session.cached_size, session.id};
  const bool grown_up = now_ms - session.created_ms > protected_ms;
  if (!session.privileged || grown_up) for_privileged_.insert(after);
  if (grown_up) for_all_.insert(after);
}

void FetchSessions::remove(Session& session) {
  by_use_.erase({session.used_ms, session.id});
  const Worth worth{session.privileged, session.cached_size, session.id};
  for_all_.erase(worth);
  for_privileged_.erase(worth);
  partitions_ -= session.cached_size;
  sessions_.erase(session.id);
}

}  // namespace broker
