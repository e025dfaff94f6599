#include "broker/groups/consumer/assignor.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "protocol/base/check.h"

namespace broker::groups::consumer {
namespace {

// Static members first, by their instance ids: a restart, which changes the member's id, then moves
// nothing.
std::vector<std::size_t> range_order(const AssignmentInput& input) {
  std::vector<std::size_t> order(input.members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const AssignmentInput::Member &left = input.members[a], &right = input.members[b];
    if (left.instance_id && right.instance_id) return *left.instance_id < *right.instance_id;
    if (left.instance_id || right.instance_id) return left.instance_id.has_value();
    return left.id < right.id;
  });
  return order;
}

class UniformAssignment {
 public:
  explicit UniformAssignment(const AssignmentInput& input)
      : input_(input), topics_(input.members.front().topics) {}

  AssignmentResult run() {
    find_free_partitions();
    quota_ = total_ / input_.members.size();
    extras_ = total_ % input_.members.size();
    for (std::size_t i = 0; i < input_.members.size(); ++i) keep(i);
    hand_out();
    return std::move(result_);
  }

 private:
  void find_free_partitions() {
    std::set<base::TopicPartition> taken;
    for (const AssignmentInput::Member& member : input_.members) {
      for (const auto& [topic, partitions] : member.previous) {
        for (const std::int32_t partition : partitions) taken.insert({topic, partition});
      }
    }
    for (const base::Uuid& topic : topics_) {
      const std::int32_t count = input_.partitions.at(topic);
      total_ += static_cast<std::size_t>(count);
      for (std::int32_t p = 0; p < count; ++p) {
        if (!taken.contains({topic, p})) free_.push_back({topic, p});
      }
    }
  }

  // What a member keeps of its partitions, and how many it lacks. One partition more than the quota
  // goes to those that have one already, and at the end to whoever comes last.
  void keep(std::size_t index) {
    std::size_t room = quota_;
    bool with_extra = extras_ > 0;
    if (with_extra) ++room;
    Partitions& kept = result_.emplace_back();
    for (const auto& [topic, partitions] : input_.members[index].previous) {
      if (!topics_.contains(topic)) continue;
      for (const std::int32_t partition : partitions) {
        if (room > 0) {
          --room;
          kept[topic].insert(partition);
        } else {
          free_.push_back({topic, partition});
        }
      }
    }
    const bool must_take_it = input_.members.size() - index <= extras_;
    if (room > 0 && with_extra && !must_take_it) {
      --room;
      with_extra = false;
    }
    lacking_.push_back(room);
    if (with_extra) --extras_;
  }

  void hand_out() {
    std::size_t next = 0;
    for (std::size_t i = 0; i < lacking_.size(); ++i) {
      for (std::size_t n = 0; n < lacking_[i] && next < free_.size(); ++n, ++next)
        result_[i][free_[next].topic_id].insert(free_[next].partition);
    }
    CHECK(next == free_.size());
  }

  const AssignmentInput& input_;
  const std::set<base::Uuid>& topics_;
  std::size_t total_ = 0, quota_ = 0, extras_ = 0;
  std::vector<base::TopicPartition> free_;
  std::vector<std::size_t> lacking_;
  AssignmentResult result_;
};

}  // namespace

AssignmentResult assign_range(const AssignmentInput& input) {
  struct Share {
    std::int32_t each = 0, extras = 0, next = 0, members = 0;
  };
  std::map<base::Uuid, Share> shares;
  for (const AssignmentInput::Member& member : input.members) {
    for (const base::Uuid& topic : member.topics) ++shares[topic].members;
  }
  for (auto& [topic, share] : shares) {
    share.each = input.partitions.at(topic) / share.members;
    share.extras = input.partitions.at(topic) % share.members;
  }
  AssignmentResult result(input.members.size());
  for (const std::size_t index : range_order(input)) {
    for (const base::Uuid& topic : input.members[index].topics) {
      Share& share = shares[topic];
      std::int32_t count = share.each;
      if (share.extras > 0) {
        --share.extras;
        ++count;
      }
      for (; count > 0; --count) result[index][topic].insert(share.next++);
    }
  }
  return result;
}

AssignmentResult assign_uniform(const AssignmentInput& input) {
  if (input.members.empty()) return {};
  if (!input.homogeneous) return assign_uniform_mixed(input);
  if (input.members.front().topics.empty()) return AssignmentResult(input.members.size());
  return UniformAssignment(input).run();
}

std::optional<AssignorKind> find_assignor(std::string_view name) {
  if (name == "uniform") return AssignorKind::uniform;
  if (name == "range") return AssignorKind::range;
  return std::nullopt;
}

AssignmentResult assign(AssignorKind kind, const AssignmentInput& input) {
  return kind == AssignorKind::range ? assign_range(input) : assign_uniform(input);
}

}  // namespace broker::groups::consumer
