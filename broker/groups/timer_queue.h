// What is due when: at most one deadline for a key.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace broker::groups {

struct TimerKey {
  enum class Kind : std::uint8_t {
    member,  // has not been heard of: its session ends
    join,    // the group has waited long enough for members to join
    sync,    // ... for members to ask for their assignment
    // Of groups of the "consumer" protocol:
    rebalance,      // a member does not give up its partitions
    member_join,    // a member of the classic protocol does not join again
    member_sync,    // ... does not ask for its assignment
    changed,        // the group has come to its protocol: its members' sessions begin
    changed_whole,  // ... and it need not be rebalanced
    regexes,        // what the group's expressions stand for is to be looked up: at once
  };
  Kind kind{};
  std::string group;
  std::string member;  // where it is about one
  auto operator<=>(const TimerKey&) const = default;
};

class TimerQueue {
 public:
  // In place of the deadline that the key had.
  void set(const TimerKey& key, std::int64_t deadline_ms) {
    cancel(key);
    deadlines_.emplace(key, deadline_ms);
    due_.emplace(deadline_ms, key);
  }
  void cancel(const TimerKey& key) {
    const auto at = deadlines_.find(key);
    if (at == deadlines_.end()) return;
    due_.erase({at->second, key});
    deadlines_.erase(at);
  }
  bool has(const TimerKey& key) const { return deadlines_.contains(key); }
  std::optional<std::int64_t> next_deadline_ms() const {
    if (due_.empty()) return std::nullopt;
    return due_.begin()->first;
  }
  // Takes out the first that is due.
  std::optional<TimerKey> take_due(std::int64_t now_ms) {
    if (due_.empty() || due_.begin()->first > now_ms) return std::nullopt;
    TimerKey key = due_.begin()->second;
    cancel(key);
    return key;
  }
  std::size_t size() const { return due_.size(); }

 private:
  std::map<TimerKey, std::int64_t> deadlines_;
  std::set<std::pair<std::int64_t, TimerKey>> due_;
};

}  // namespace broker::groups
