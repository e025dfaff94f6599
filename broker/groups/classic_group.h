// A group of the classic protocol: its members, who leads, which of their protocols is used. Knows
// nothing of timers and of what is written down; see classic_rebalance.cc for its life.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/types.h"

namespace broker::groups {

constexpr std::string_view consumer_protocol_type = "consumer";

enum class ClassicState : std::uint8_t {
  empty,
  preparing_rebalance,   // waits for members to join
  completing_rebalance,  // waits for the leader's assignment
  stable,
};
// As DescribeGroups writes it.
std::string_view name_of(ClassicState state);

struct ClassicProtocol {
  std::string name;
  base::Buffer metadata;
  bool operator==(const ClassicProtocol&) const = default;
};

struct ClassicMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string client_host;
  std::int32_t rebalance_timeout_ms = 0;
  std::int32_t session_timeout_ms = 0;
  std::vector<ClassicProtocol> protocols;  // the preferred one first
  base::Buffer assignment;

  // Not written down:
  std::optional<Ticket> joining;  // its JoinGroup waits
  std::optional<Ticket> syncing;  // its SyncGroup waits
  bool is_new = false;            // not yet told of its first generation

  const base::Buffer* metadata(std::string_view protocol) const;
  // The first of its protocols that all can use.
  const std::string* vote(const std::set<std::string, std::less<>>& candidates) const;
};

class ClassicGroup {
 public:
  using Members = std::map<std::string, ClassicMember, std::less<>>;

  std::string group_id;
  ClassicState state = ClassicState::empty;
  std::int32_t generation = 0;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  std::optional<std::string> leader;
  // When it came into its state; absent: written by a broker that did not write it down.
  std::optional<std::int64_t> state_since_ms;

  // Written without a leader: it was of the other protocol, and somebody's partitions are nobody's
  // until it has been rebalanced.
  bool awaits_rebalance = false;

  // Not written down:
  bool initial_rebalance = false;  // of the present rebalance: the group was empty before
  bool member_added = false;       // since the initial delay was last lengthened
  std::int32_t delay_ms = 0;       // of the initial rebalance: the part that runs
  std::int32_t delay_left_ms = 0;  // ... and what is left after it
  std::set<std::string, std::less<>> pending;       // were told an id and have yet to join with it
  std::set<std::string, std::less<>> pending_sync;  // have yet to ask for their assignment

  const Members& members() const { return members_; }
  Members& members() { return members_; }
  ClassicMember* find(std::string_view id);
  const ClassicMember* find(std::string_view id) const;
  bool is_leader(std::string_view id) const { return leader == id; }
  bool is_in(ClassicState one) const { return state == one; }
  // The member that has this instance id.
  const std::string* static_member(std::string_view instance_id) const;

  // The first member decides on the protocol type and leads.
  ClassicMember& add(ClassicMember member);
  // The member, or the pending one. Another leads if it did.
  void remove(std::string_view id);
  void forget_members();
  // The same member under a new id.
  ClassicMember& rename(std::string_view old_id, const std::string& new_id);

  void enter(ClassicState next, std::int64_t now_ms);

  bool uses_consumer_protocol() const { return protocol_type == consumer_protocol_type; }
  // Whether a member with these could be in the group with those that are there.
  bool supports(std::string_view type, const std::vector<std::string_view>& protocols) const;
  // What most members prefer of those that all can use. There are members.
  std::string select_protocol() const;
  bool all_joined() const { return awaiting_join() == members_.size() && pending.empty(); }
  std::size_t awaiting_join() const;
  std::int32_t rebalance_timeout_ms() const;  // the longest of all members
  // If the leader has not joined, one that has leads now. False: nobody has joined.
  bool elect_joined_leader();

  // unknown_member_id or fenced_instance_id.
  protocol::ErrorCode check_member(std::string_view id,
                                   const std::optional<std::string>& instance_id) const;
  // What the leader is told of the members.
  std::vector<JoinReply::Member> joined_members() const;

  // The topics that the members asked for, where that is known: of the protocol type "consumer",
  // between rebalances.
  const std::optional<std::set<std::string, std::less<>>>& subscribed_topics() const {
    return subscribed_topics_;
  }
  bool is_subscribed_to(std::string_view topic) const;
  void find_subscribed_topics();

 private:
  std::set<std::string, std::less<>> common_protocols() const;

  Members members_;
  std::map<std::string, std::string, std::less<>> static_members_;  // instance id, member id
  std::optional<std::set<std::string, std::less<>>> subscribed_topics_;
};

// The topics of a subscription as clients of the protocol type "consumer" send it; nothing if it is
// malformed.
std::optional<std::vector<std::string>> parse_subscription(base::Bytes metadata);

}  // namespace broker::groups
