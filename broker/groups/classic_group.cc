#include "broker/groups/classic_group.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/wire.h"

namespace broker::groups {

using protocol::ErrorCode;

std::string_view name_of(ClassicState state) {
  switch (state) {
    case ClassicState::empty:
      return "Empty";
    case ClassicState::preparing_rebalance:
      return "PreparingRebalance";
    case ClassicState::completing_rebalance:
      return "CompletingRebalance";
    case ClassicState::stable:
      return "Stable";
  }
  return "";
}

const base::Buffer* ClassicMember::metadata(std::string_view protocol) const {
  const auto at = std::ranges::find(protocols, protocol, &ClassicProtocol::name);
  return at == protocols.end() ? nullptr : &at->metadata;
}

const std::string* ClassicMember::vote(const std::set<std::string, std::less<>>& candidates) const {
  for (const ClassicProtocol& one : protocols)
    if (candidates.contains(one.name)) return &one.name;
  return nullptr;
}

ClassicMember* ClassicGroup::find(std::string_view id) {
  const auto at = members_.find(id);
  return at == members_.end() ? nullptr : &at->second;
}

const ClassicMember* ClassicGroup::find(std::string_view id) const {
  const auto at = members_.find(id);
  return at == members_.end() ? nullptr : &at->second;
}

const std::string* ClassicGroup::static_member(std::string_view instance_id) const {
  const auto at = static_members_.find(instance_id);
  return at == static_members_.end() ? nullptr : &at->second;
}

ClassicMember& ClassicGroup::add(ClassicMember member) {
  if (member.instance_id) static_members_[*member.instance_id] = member.id;
  if (!leader) leader = member.id;
  pending.erase(member.id);
  std::string id = member.id;
  return members_.insert_or_assign(std::move(id), std::move(member)).first->second;
}

void ClassicGroup::remove(std::string_view id) {
  if (const auto at = members_.find(id); at != members_.end()) {
    if (const auto& instance = at->second.instance_id) {
      const auto named = static_members_.find(*instance);
      if (named != static_members_.end() && named->second == id) static_members_.erase(named);
    }
    members_.erase(at);
  }
  if (const auto at = pending.find(id); at != pending.end()) pending.erase(at);
  if (const auto at = pending_sync.find(id); at != pending_sync.end()) pending_sync.erase(at);
  if (!is_leader(id)) return;
  leader.reset();
  if (!members_.empty()) leader = members_.begin()->first;
}

void ClassicGroup::forget_members() {
  members_.clear();
  static_members_.clear();
  leader.reset();
}

ClassicMember& ClassicGroup::rename(std::string_view old_id, const std::string& new_id) {
  auto node = members_.extract(members_.find(old_id));
  CHECK(!node.empty());
  node.key() = new_id;
  node.mapped().id = new_id;
  if (node.mapped().instance_id) static_members_[*node.mapped().instance_id] = new_id;
  if (is_leader(old_id)) leader = new_id;
  if (const auto at = pending_sync.find(old_id); at != pending_sync.end()) {
    pending_sync.erase(at);
    pending_sync.insert(new_id);
  }
  return members_.insert(std::move(node)).position->second;
}

void ClassicGroup::enter(ClassicState next, std::int64_t now_ms) {
  state = next;
  state_since_ms = now_ms;
}

bool ClassicGroup::supports(std::string_view type,
                            const std::vector<std::string_view>& protocols) const {
  if (state == ClassicState::empty) return !type.empty() && !protocols.empty();
  if (protocol_type != type) return false;
  const auto common = common_protocols();
  return std::ranges::any_of(protocols,
                             [&](std::string_view name) { return common.contains(name); });
}

std::set<std::string, std::less<>> ClassicGroup::common_protocols() const {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [id, member] : members_) {
    std::set<std::string_view> names;  // one that is listed twice counts once
    for (const ClassicProtocol& one : member.protocols) names.insert(one.name);
    for (const std::string_view name : names) ++counts[name];
  }
  std::set<std::string, std::less<>> common;
  for (const auto& [name, count] : counts)
    if (count == members_.size()) common.emplace(name);
  return common;
}

std::string ClassicGroup::select_protocol() const {
  const auto candidates = common_protocols();
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : members_)
    if (const std::string* choice = member.vote(candidates)) ++votes[*choice];
  CHECK(!votes.empty());  // nobody is let in who has nothing in common with the others
  return std::string(
      std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; })->first);
}

std::size_t ClassicGroup::awaiting_join() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const auto& m) { return m.second.joining.has_value(); }));
}

std::int32_t ClassicGroup::rebalance_timeout_ms() const {
  std::int32_t longest = 0;
  for (const auto& [id, member] : members_)
    longest = std::max(longest, member.rebalance_timeout_ms);
  return longest;
}

bool ClassicGroup::elect_joined_leader() {
  if (!leader) return false;
  const ClassicMember* now = find(*leader);
  CHECK(now != nullptr);
  if (now->joining) return true;
  const auto joined =
      std::ranges::find_if(members_, [](const auto& m) { return m.second.joining.has_value(); });
  if (joined == members_.end()) return false;
  leader = joined->first;
  return true;
}

ErrorCode ClassicGroup::check_member(std::string_view id,
                                     const std::optional<std::string>& instance_id) const {
  if (instance_id) {
    const std::string* holder = static_member(*instance_id);
    if (!holder) return ErrorCode::unknown_member_id;
    if (*holder != id) return ErrorCode::fenced_instance_id;
  }
  return find(id) ? ErrorCode::none : ErrorCode::unknown_member_id;
}

std::vector<JoinReply::Member> ClassicGroup::joined_members() const {
  std::vector<JoinReply::Member> all;
  for (const auto& [id, member] : members_) {
    const base::Buffer* metadata = member.metadata(protocol.value_or(""));
    all.push_back({id, member.instance_id, metadata ? *metadata : base::Buffer()});
  }
  return all;
}

bool ClassicGroup::is_subscribed_to(std::string_view topic) const {
  return subscribed_topics_ ? subscribed_topics_->contains(topic) : uses_consumer_protocol();
}

void ClassicGroup::find_subscribed_topics() {
  subscribed_topics_.reset();
  if (!uses_consumer_protocol()) return;
  std::set<std::string, std::less<>> topics;
  for (const auto& [id, member] : members_) {
    const base::Buffer* metadata = protocol ? member.metadata(*protocol) : nullptr;
    auto some = metadata ? parse_subscription(*metadata) : std::nullopt;
    if (!some) return;
    for (std::string& one : *some) topics.insert(std::move(one));
  }
  subscribed_topics_ = std::move(topics);
}

std::optional<std::vector<std::string>> parse_subscription(base::Bytes metadata) {
  // Version, then the topics; what later versions have comes behind.
  protocol::Reader reader(metadata, false);
  std::int16_t version = 0;
  std::vector<std::string> topics;
  std::int32_t count = 0;
  reader.num(version);
  reader.num(count);
  if (!reader.ok() || count < 0) return std::nullopt;
  for (std::int32_t i = 0; i < count; ++i) {
    std::string name;
    reader.text(name);
    if (!reader.ok()) return std::nullopt;
    topics.push_back(std::move(name));
  }
  return topics;
}

}  // namespace broker::groups
