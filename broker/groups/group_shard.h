// The groups of one partition of __consumer_offsets.
//
// An event (a request, a timer) is decided on first: the decision lists records and replies. The
// caller writes the records, applies them, and only then brings the next event. What a record says
// is changed by apply() alone, in replay after a restart as in life. What is not written down (who
// waits, who has joined the rebalance that runs, timers) deciding changes itself.
//
// If the records cannot be written, this state is of no use any more: make a new one from the log.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "broker/groups/classic_group.h"
#include "broker/groups/consumer/heartbeat.h"
#include "broker/groups/offset_table.h"
#include "broker/groups/pending_offsets.h"
#include "broker/groups/timer_queue.h"
#include "broker/groups/types.h"
#include "protocol/base/random.h"
#include "protocol/messages/consumer_group_describe.gen.h"
#include "protocol/messages/consumer_group_heartbeat.gen.h"
#include "protocol/messages/group_metadata.gen.h"
#include "protocol/messages/heartbeat.gen.h"
#include "protocol/messages/join_group.gen.h"
#include "protocol/messages/leave_group.gen.h"
#include "protocol/messages/sync_group.gen.h"

namespace broker::groups {

// A group is of one protocol or the other; offsets are kept apart, they survive a change of it.
using Group = std::variant<ClassicGroup, consumer::ConsumerGroup>;

struct OffsetCommit {
  struct Entry {
    std::string topic;
    base::Uuid topic_id;  // zero: not known
    std::int32_t partition = 0;
    base::Offset offset = 0;
    std::optional<base::LeaderEpoch> leader_epoch;
    std::string metadata;
    std::optional<std::int64_t> commit_timestamp_ms = {};  // absent: now
  };
  std::string group;
  std::int32_t generation_or_epoch = -1;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::optional<std::int64_t> retention_ms;
  std::vector<Entry> entries;
};

struct OffsetDeletion {
  struct Topic {
    std::string name;
    std::vector<std::int32_t> partitions;
  };
  std::string group;
  std::vector<Topic> topics;
};

struct DescribedGroup {
  struct Member {
    std::string id;
    std::optional<std::string> instance_id;
    std::string client_id;
    std::string client_host;
    base::Buffer metadata;
    base::Buffer assignment;
  };
  std::string state;
  std::string protocol_type;
  std::string protocol;
  std::vector<Member> members;
};

struct ListedGroup {
  std::string id;
  std::string protocol_type;
  std::string state;
  std::string type;  // classic or consumer
};

class GroupShard {
 public:
  GroupShard(Limits limits, base::Random random) : limits_(limits), random_(random) {}

  // What groups of the "consumer" protocol go by: before anything is asked of this.
  void set_consumer_settings(consumer::Settings settings) { consumer_settings_ = settings; }
  // Of groups that have settings of their own.
  using SettingsOfGroups = std::map<std::string, consumer::Settings, std::less<>>;
  void set_settings_of_groups(SettingsOfGroups settings) {
    settings_of_groups_ = std::move(settings);
  }
  // The topics as they are now; told before each event. Another view means that something changed.
  void set_topics(std::shared_ptr<const consumer::TopicsView> topics);

  // Requests that may be answered later, in this decision or another: once, by ticket.
  Decision join(const protocol::JoinGroupRequest& asked, const Caller& caller, Ticket ticket,
                Now now);
  Decision sync(const protocol::SyncGroupRequest& asked, Ticket ticket, Now now);

  // Requests that are answered at once.
  Decided<protocol::ErrorCode> heartbeat(const protocol::HeartbeatRequest& asked, Now now);
  Decided<protocol::LeaveGroupResponse> leave(const protocol::LeaveGroupRequest& asked, Now now);
  Decided<protocol::ConsumerGroupHeartbeatResponse> consumer_heartbeat(
      const protocol::ConsumerGroupHeartbeatRequest& asked, const Caller& caller, Now now);
  // An error for each entry, in their order.
  Decided<std::vector<protocol::ErrorCode>> commit(const OffsetCommit& asked, const Caller& caller,
                                                   Now now);
  // The same, in the producer's transaction: the offsets are pending until it ends (KIP-447). Of a
  // refused member no offset is taken, whatever else is wrong with some.
  Decided<std::vector<protocol::ErrorCode>> commit_in_transaction(const OffsetCommit& asked,
                                                                  Producer producer,
                                                                  const Caller& caller, Now now);
  // For a copy of another cluster's groups: non_empty_group if the group lives here, be it that a
  // transaction is about to commit offsets of it.
  Decided<protocol::ErrorCode> commit_mirrored(const OffsetCommit& asked, Now now);
  struct DeletedOffsets {
    protocol::ErrorCode error = protocol::ErrorCode::none;
    std::vector<protocol::ErrorCode> topics;  // of all partitions of each topic asked for
  };
  Decided<DeletedOffsets> delete_offsets(const OffsetDeletion& asked);
  Decided<protocol::ErrorCode> delete_group(const std::string& group);

  // Whether a member, or whoever, may be told what the group committed.
  protocol::ErrorCode check_fetch(const std::string& group,
                                  const std::optional<std::string>& member_id,
                                  std::int32_t member_epoch) const;
  const OffsetTable& offsets() const { return offsets_; }
  const PendingOffsets& pending_offsets() const { return pending_; }
  // Nothing unless it is there and of the classic protocol.
  std::optional<DescribedGroup> describe(const std::string& group) const;
  // Nothing unless it is there and of the "consumer" protocol.
  std::optional<protocol::ConsumerGroupDescribeResponse::Group> describe_consumer(
      const std::string& group) const;
  // Empty filters let everything through. Case does not matter.
  std::vector<ListedGroup> list(const std::vector<std::string>& states,
                                const std::vector<std::string>& types) const;

  // When expire() has something to do next, on the monotonic clock.
  std::optional<std::int64_t> next_deadline_ms() const { return timers_.next_deadline_ms(); }
  // What follows from the timer that is due first; nothing when none is.
  std::optional<Decision> expire(Now now);
  // Drops offsets that are too old, and groups that have nothing left.
  Decision clean(Now now);
  // Drops the offsets in a topic that is no longer there.
  Decision forget_topic(const std::string& topic);

  // A record that was written. False: it is malformed, or of a kind that is not known, and nothing
  // was changed.
  bool apply(base::Bytes key, std::optional<base::Bytes> value, const Place& place);
  // A marker that was written: the producer's transaction has ended.
  void apply_marker(base::ProducerId producer, bool committed);
  // All records that there were are applied: members have their session from now on.
  Decision loaded(Now now);
  // This state is given up: everybody who waits is told.
  std::vector<Reply> abandon(protocol::ErrorCode error);

  // For tests.
  const std::map<std::string, Group, std::less<>>& groups() const { return groups_; }
  const TimerQueue& timers() const { return timers_; }

 private:
  ClassicGroup* classic(std::string_view id);
  const ClassicGroup* classic(std::string_view id) const;
  consumer::ConsumerGroup* consumer_group(std::string_view id);
  const consumer::ConsumerGroup* consumer_group(std::string_view id) const;

  // classic_join.cc
  struct Join {
    const protocol::JoinGroupRequest& asked;
    const Caller& caller;
    Ticket ticket;
    Now now;
    std::int32_t rebalance_timeout_ms;
  };
  bool accepts(const ClassicGroup& group, std::string_view member_id) const;
  void join_new(const Join& join, ClassicGroup& group, Decision& out);
  void join_known(const Join& join, ClassicGroup& group, Decision& out);
  void rejoin(const Join& join, ClassicGroup& group, ClassicMember& member, Decision& out);
  void add_member(const Join& join, ClassicGroup& group, std::string id, Decision& out);
  void update_member(const Join& join, ClassicMember& member, Decision& out);
  void replace_static(const Join& join, ClassicGroup& group, const std::string& old_id,
                      const std::string& new_id, Decision& out);
  std::string new_member_id(const Join& join);

  // classic_rebalance.cc
  void prepare_or_complete(ClassicGroup& group, Now now, Decision& out);
  void prepare_rebalance(ClassicGroup& group, Now now, Decision& out);
  void maybe_complete_join(ClassicGroup& group, Now now, Decision& out);
  void complete_join(ClassicGroup& group, Now now, Decision& out);
  void begin_generation(ClassicGroup& group, Now now, Decision& out);
  void initial_delay_over(ClassicGroup& group, Now now, Decision& out);
  void session_over(ClassicGroup& group, const std::string& member, Now now, Decision& out);
  void sync_overdue(ClassicGroup& group, Now now, Decision& out);
  void assign(ClassicGroup& group, const protocol::SyncGroupRequest& asked, Now now, Decision& out);
  void drop_pending_sync(ClassicGroup& group, std::string_view member);
  // Whoever waits in the member's name is told that it is none.
  void remove_member(ClassicGroup& group, const std::string& member, Decision& out);
  void restart_session(const ClassicGroup& group, const ClassicMember& member, Now now);
  void stop_session(const ClassicGroup& group, const std::string& member);

  // classic_members.cc
  protocol::ErrorCode leave_one(ClassicGroup& group, const protocol::LeaveGroupRequest::Member& who,
                                Decision& out);

  // consumer_requests.cc
  const consumer::Settings& settings_of(std::string_view group) const;
  consumer::Surroundings surroundings(std::string_view group, Now now) const;
  // What an outcome names beside its records. `group` is the one that it is about.
  void take(consumer::Outcome outcome, const std::string& group, Now now, Decision& out);
  void set_timer(const std::string& group, const consumer::TimerChange& change, Now now);
  Decision consumer_timeout(const TimerKey& timer, Now now);
  bool apply_consumer(const std::string& id, base::Bytes key, std::optional<base::Bytes> value);
  // Nobody is in it, so that a group of the other protocol may take its place.
  void drop_if_empty(const std::string& id, Decision& out);
  void stop_timers(const consumer::ConsumerGroup& group);

  // mixed_groups.cc
  std::optional<consumer::ConsumerGroup> upgrade(ClassicGroup& group, Now now, Decision& out,
                                                 consumer::Refusal& refusal);
  void downgrade(consumer::ClassicFacts facts, Now now, Decision& out);
  // `whole`: everybody may keep what it has.
  Decision protocol_changed(const std::string& id, bool whole, Now now);
  Decision join_as_classic(const protocol::JoinGroupRequest& asked, const Caller& caller,
                           Ticket ticket, Now now);
  Decision sync_as_classic(const protocol::SyncGroupRequest& asked, Ticket ticket, Now now);
  Decided<protocol::ErrorCode> beat_as_classic(const protocol::HeartbeatRequest& asked, Now now);
  Decided<protocol::LeaveGroupResponse> leave_as_classic(
      const std::string& group, const std::vector<protocol::LeaveGroupRequest::Member>& members,
      Now now);

  // offset_requests.cc
  // `outsider` is for who does not speak for a member while the group has some.
  static protocol::ErrorCode check_classic_commit(const ClassicGroup& group,
                                                  const OffsetCommit& asked,
                                                  protocol::ErrorCode outsider);
  std::vector<protocol::ErrorCode> check_commit(const OffsetCommit& asked,
                                                const Caller& caller) const;
  CommittedOffset committed(const OffsetCommit& asked, const OffsetCommit::Entry& entry,
                            Now now) const;
  bool drop_expired(const std::string& id, const Group& group, Now now, Decision& out) const;

  // transactional_offsets.cc
  std::vector<protocol::ErrorCode> check_in_transaction(const OffsetCommit& asked,
                                                        const Caller& caller) const;

  // apply.cc
  bool apply_offset(base::Bytes key, std::optional<base::Bytes> value, const Place& place);
  void apply_classic(const std::string& id, protocol::GroupMetadataValue value);
  void forget_group(const std::string& id);

  Limits limits_;
  base::Random random_;
  std::map<std::string, Group, std::less<>> groups_;
  OffsetTable offsets_;
  PendingOffsets pending_;
  TimerQueue timers_;
  consumer::Settings consumer_settings_;
  SettingsOfGroups settings_of_groups_;
  std::shared_ptr<const consumer::TopicsView> topics_;
  std::map<std::pair<std::string, std::string>, std::int32_t> rebalance_epochs_;
};

}  // namespace broker::groups
