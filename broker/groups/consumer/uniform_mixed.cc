// The uniform assignor for members that want different topics. Topics with few takers for their
// many partitions come first, because others can make up for them; then partitions move from those
// who have most to those who have least until that brings nothing more.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "broker/groups/consumer/assignor.h"

namespace broker::groups::consumer {
namespace {

constexpr std::size_t nobody = static_cast<std::size_t>(-1);
// Each round halves the imbalance, more or less: some are left when wishes overlap in odd ways.
constexpr int balancing_rounds_max = 16;

// Kafka compares ids as two signed numbers.
bool comes_before(const base::Uuid& a, const base::Uuid& b) {
  const auto flipped = [](const base::Uuid& id) {
    std::array<std::byte, 16> bytes = id.bytes;
    bytes[0] ^= std::byte{0x80};
    bytes[8] ^= std::byte{0x80};
    return bytes;
  };
  return flipped(a) < flipped(b);
}

// The takers of one topic by the number of partitions that they have (of all topics), and a mark at
// each end that walks inwards: who is next to get one, and who to give one up. A level is a set of
// takers with one number; once all of it had its turn, the level rises (or falls) by one and takes
// in those that were there before.
class Takers {
 public:
  Takers(std::vector<std::size_t> members, const std::vector<std::int32_t>& sizes)
      : sizes_(sizes), order_(std::move(members)) {
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) {
      return std::pair(sizes_[a], a) < std::pair(sizes_[b], b);
    });
    low_level_ = sizes_[order_.front()] - 1;
    high_level_ = sizes_[order_.back()] + 1;
    high_begin_ = high_end_ = next_high_ = order_.size();
  }

  std::int32_t imbalance() const { return sizes_[order_.back()] - sizes_[order_.front()]; }
  bool is_balanced() const { return high_level_ - low_level_ <= 1; }

  std::size_t take_least_loaded() {
    if (next_low_ >= low_end_) {
      ++low_level_;
      while (low_end_ < order_.size() && sizes_[order_[low_end_]] == low_level_) ++low_end_;
      next_low_ = 0;
    }
    return order_[next_low_++];
  }

  // `nobody`: none is left that could give one up.
  std::size_t take_most_loaded() {
    if (next_high_ <= high_begin_) {
      // When all of the level turned out to have nothing to give, the next one need not be near.
      const bool level_is_empty = high_end_ <= high_begin_ && high_begin_ > 0;
      high_level_ = level_is_empty ? sizes_[order_[high_begin_ - 1]] : high_level_ - 1;
      while (high_begin_ > 0 && sizes_[order_[high_begin_ - 1]] == high_level_) --high_begin_;
      next_high_ = high_end_;
    }
    if (next_high_ == 0) return nobody;
    return order_[--next_high_];
  }
  // The one that was taken last has nothing to give.
  void exclude_most_loaded() { std::swap(order_[next_high_], order_[--high_end_]); }

 private:
  const std::vector<std::int32_t>& sizes_;
  std::vector<std::size_t> order_;
  std::size_t low_end_ = 0, next_low_ = 0;
  std::size_t high_begin_ = 0, high_end_ = 0;
  std::size_t next_high_ = 0;  // one behind who is next
  std::int32_t low_level_ = 0, high_level_ = 0;
};

class MixedAssignment {
 public:
  explicit MixedAssignment(const AssignmentInput& input)
      : input_(input), sizes_(input.members.size()) {
    for (std::size_t i = 0; i < input.members.size(); ++i) {
      for (const base::Uuid& topic : input.members[i].topics) topics_[topic].takers.push_back(i);
    }
    for (auto& [id, topic] : topics_)
      topic.owners.assign(static_cast<std::size_t>(input.partitions.at(id)), nobody);
  }

  AssignmentResult run() {
    keep_what_is_wanted();
    for (Topic* topic : sorted()) hand_out(*topic);
    balance();
    return result();
  }

 private:
  struct Topic {
    std::vector<std::size_t> takers;  // indexes of members, ascending
    std::vector<std::size_t> owners;  // of each partition
  };

  void keep_what_is_wanted() {
    for (std::size_t i = 0; i < input_.members.size(); ++i) {
      const AssignmentInput::Member& member = input_.members[i];
      for (const auto& [id, partitions] : member.previous) {
        if (!member.topics.contains(id)) continue;
        Topic& topic = topics_.at(id);
        for (const std::int32_t partition : partitions) {
          const auto p = static_cast<std::size_t>(partition);
          if (p >= topic.owners.size() || topic.owners[p] != nobody) continue;
          topic.owners[p] = i;
          ++sizes_[i];
        }
      }
    }
  }

  std::vector<Topic*> sorted() {
    std::vector<std::pair<base::Uuid, Topic*>> found;
    for (auto& [id, topic] : topics_) found.emplace_back(id, &topic);
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      const auto per_taker = [](const Topic& t) {
        return static_cast<double>(t.owners.size()) / static_cast<double>(t.takers.size());
      };
      if (per_taker(*a.second) != per_taker(*b.second))
        return per_taker(*a.second) > per_taker(*b.second);
      if (a.second->takers.size() != b.second->takers.size())
        return a.second->takers.size() < b.second->takers.size();
      return comes_before(a.first, b.first);
    });
    std::vector<Topic*> out;
    for (const auto& [id, topic] : found) out.push_back(topic);
    return out;
  }

  void hand_out(Topic& topic) {
    Takers takers(topic.takers, sizes_);
    for (std::size_t p = 0; p < topic.owners.size(); ++p) {
      if (topic.owners[p] == nobody) give(topic, p, takers.take_least_loaded());
    }
  }

  void balance() {
    std::vector<Topic*> order = sorted();
    std::erase_if(order, [](const Topic* topic) { return topic->takers.size() < 2; });
    std::size_t last_changed = nobody;
    for (int round = 0; round < balancing_rounds_max; ++round) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == last_changed) return;  // nothing has moved since
        const bool moved = balance(*order[i]);
        if (moved || last_changed == nobody) last_changed = i;
      }
    }
  }

  // Whether a partition has moved.
  bool balance(Topic& topic) {
    Takers takers(topic.takers, sizes_);
    if (takers.imbalance() <= 1) return false;
    std::map<std::size_t, std::vector<std::size_t>> of_owner;
    for (std::size_t p = 0; p < topic.owners.size(); ++p) of_owner[topic.owners[p]].push_back(p);
    bool moved = false;
    while (!takers.is_balanced()) {
      const std::size_t giver = find_giver(takers, of_owner);
      if (giver == nobody) break;
      const std::size_t partition = of_owner[giver].back();
      of_owner[giver].pop_back();
      const std::size_t taker = takers.take_least_loaded();
      if (takers.is_balanced()) break;
      give(topic, partition, taker);
      moved = true;
    }
    return moved;
  }

  static std::size_t find_giver(Takers& takers,
                                const std::map<std::size_t, std::vector<std::size_t>>& of_owner) {
    for (;;) {
      const std::size_t giver = takers.take_most_loaded();
      if (giver == nobody) return nobody;
      const auto has = of_owner.find(giver);
      if (has != of_owner.end() && !has->second.empty()) return giver;
      takers.exclude_most_loaded();
    }
  }

  void give(Topic& topic, std::size_t partition, std::size_t to) {
    const std::size_t from = std::exchange(topic.owners[partition], to);
    if (from != nobody) --sizes_[from];
    ++sizes_[to];
  }

  AssignmentResult result() const {
    AssignmentResult out(input_.members.size());
    for (const auto& [id, topic] : topics_) {
      for (std::size_t p = 0; p < topic.owners.size(); ++p) {
        if (topic.owners[p] != nobody)
          out[topic.owners[p]][id].insert(static_cast<std::int32_t>(p));
      }
    }
    return out;
  }

  const AssignmentInput& input_;
  std::map<base::Uuid, Topic> topics_;
  std::vector<std::int32_t> sizes_;  // partitions of each member
};

}  // namespace

AssignmentResult assign_uniform_mixed(const AssignmentInput& input) {
  return MixedAssignment(input).run();
}

}  // namespace broker::groups::consumer
