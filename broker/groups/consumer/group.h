// A group of the "consumer" protocol (KIP-848): what is written down of it, and what follows from
// that. It changes through apply() alone (records.h), live and in replay alike.
//
// Three kinds of epochs. The group's grows when what the members want, or their topics, change. The
// assignment's follows when a target for all members was computed. A member's follows when it has
// given up what is not in its target any more. Each is raised by one or more, never lowered, but
// for a member that joins anew.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/groups/consumer/topics.h"
#include "protocol/base/bytes.h"

namespace broker::groups::consumer {

constexpr std::int32_t joining_epoch = 0;
constexpr std::int32_t leaving_epoch = -1;
constexpr std::int32_t leaving_static_epoch = -2;  // the member will come back

// As they are written.
enum class MemberState : std::int8_t {
  stable = 0,
  unrevoked_partitions = 1,   // has yet to say that it gave up partitions
  unreleased_partitions = 2,  // waits for partitions that others have yet to give up
  unknown = 127,              // written by a later release
};

enum class GroupState : std::uint8_t { empty, assigning, reconciling, stable };
// As DescribeGroups and ListGroups write it.
std::string_view name_of(GroupState state);

struct ClassicProtocol {
  std::string name;
  base::Buffer metadata;
  bool operator==(const ClassicProtocol&) const = default;
};
// Of a member that speaks the classic protocol.
struct ClassicSide {
  std::int32_t session_timeout_ms = 0;
  std::vector<ClassicProtocol> protocols;
  bool operator==(const ClassicSide&) const = default;
};

struct Member {
  std::string id;
  std::optional<std::string> instance_id;
  std::optional<std::string> rack_id;
  std::string client_id;
  std::string client_host;
  std::int32_t rebalance_timeout_ms = -1;
  TopicNames topics;  // by name
  std::string regex;  // of topics; empty: none
  std::optional<std::string> assignor;
  std::optional<ClassicSide> classic;

  std::int32_t epoch = joining_epoch;
  // What an answer that got lost may have replaced.
  std::int32_t previous_epoch = -1;
  MemberState state = MemberState::stable;
  HeldPartitions assigned;
  HeldPartitions revoking;  // was told to give them up, and has yet to say that it did

  bool operator==(const Member&) const = default;
  bool is_reconciled_to(std::int32_t assignment_epoch) const {
    return state == MemberState::stable && epoch == assignment_epoch;
  }
};

struct ResolvedRegex {
  TopicNames topics;
  std::int64_t version = 0;  // TopicsView's
  std::int64_t resolved_ms = 0;
  bool operator==(const ResolvedRegex&) const = default;
};

// What members want, counted.
struct Subscriptions {
  struct Count {
    std::int32_t members = 0;  // that named the topic
    std::int32_t regexes = 0;  // that stand for it, whoever uses them
    bool operator==(const Count&) const = default;
  };
  std::map<std::string, Count, std::less<>> topics;
  std::map<std::string, std::int32_t, std::less<>> regexes;    // members that use it
  std::map<std::string, std::int32_t, std::less<>> assignors;  // members that prefer it

  void add(const Member& member) { count(member, 1); }
  void remove(const Member& member) { count(member, -1); }
  void add(const ResolvedRegex& regex) { count(regex, 1); }
  void remove(const ResolvedRegex& regex) { count(regex, -1); }
  std::int32_t users_of(std::string_view regex) const;
  TopicNames topic_names() const;
  // Whether all of so many members want the same.
  bool is_homogeneous(std::size_t members) const;

 private:
  void count(const Member& member, std::int32_t by);
  void count(const ResolvedRegex& regex, std::int32_t by);
};

// When the hash of the topics is to be compared again. Not written down.
struct MetadataRefresh {
  std::int64_t due_ms = 0;
  std::int32_t epoch = 0;  // of the group, that it was set for
};

class ConsumerGroup {
 public:
  using Members = std::map<std::string, Member, std::less<>>;
  using Targets = std::map<std::string, Partitions, std::less<>>;
  using Regexes = std::map<std::string, ResolvedRegex, std::less<>>;

  explicit ConsumerGroup(std::string id) : id_(std::move(id)) {}

  std::int32_t epoch = 1;
  std::int64_t metadata_hash = 0;
  std::int32_t assignment_epoch = 1;  // -1: its record was deleted
  // When the target was computed; 0: unknown, or nothing to wait for.
  std::int64_t assigned_ms = 0;
  // Kafka before 4.1 wrote a record for the topics, which is to go.
  bool has_partition_metadata = false;

  MetadataRefresh metadata_refresh = {};

  const std::string& id() const { return id_; }
  const Members& members() const { return members_; }
  const Member* find(std::string_view member_id) const;
  const Member* static_member(std::string_view instance_id) const;
  void put(Member member);
  void remove(std::string_view member_id);

  const Targets& targets() const { return targets_; }
  const Partitions& target_of(std::string_view member_id) const;
  void set_target(const std::string& member_id, Partitions target);
  void remove_target(std::string_view member_id);

  const Regexes& regexes() const { return regexes_; }
  const ResolvedRegex* find_regex(std::string_view regex) const;
  void set_regex(const std::string& regex, ResolvedRegex resolved);
  void remove_regex(std::string_view regex);

  const Subscriptions& subscriptions() const { return subscriptions_; }
  bool is_subscribed_to(std::string_view topic) const;
  // Whether a member has it, or has yet to give it up.
  bool is_held(const base::Uuid& topic, std::int32_t partition) const;
  // Members of the classic protocol.
  std::size_t classic_members() const { return classic_members_; }

  GroupState state() const;
  bool is_refresh_due(std::int64_t now_ms) const {
    return now_ms >= metadata_refresh.due_ms || epoch < metadata_refresh.epoch;
  }
  // Something about its topics has changed: they are looked at with the next heartbeat.
  void request_refresh() { metadata_refresh = {}; }

  // What is written down is the same.
  bool operator==(const ConsumerGroup& other) const;

 private:
  void index(const Member& member);
  void unindex(const Member& member);

  std::string id_;
  Members members_;
  Targets targets_;
  Regexes regexes_;

  Subscriptions subscriptions_;
  std::map<std::string, std::string, std::less<>> static_members_;  // instance id, member id
  std::map<base::Uuid, std::map<std::int32_t, std::string>> holders_;
  std::size_t classic_members_ = 0;
};

// What the member would be subscribed to, of the topics that there are.
std::set<base::Uuid> subscribed_topic_ids(const Member& member,
                                          const ConsumerGroup::Regexes& regexes,
                                          const TopicsView& topics);

}  // namespace broker::groups::consumer
