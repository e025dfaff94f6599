// A group, its log and its members' clients, driven through decisions as a driver would.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/groups/consumer/heartbeat.h"
#include "broker/groups/consumer/records.h"

namespace broker::groups::consumer {

base::Uuid topic_uuid(int n);

class FakeTopics : public TopicsView {
 public:
  void add(const std::string& name, std::int32_t partitions);
  void remove(const std::string& name);
  void grow(const std::string& name, std::int32_t partitions);

  std::optional<TopicFacts> find(std::string_view name) const override;
  std::optional<TopicFacts> find(const base::Uuid& id) const override;
  void for_each_name(const std::function<void(const std::string&)>& visit) const override;
  std::int64_t version() const override { return version_; }
  const std::map<std::string, TopicFacts, std::less<>>& all() const { return topics_; }

 private:
  std::map<std::string, TopicFacts, std::less<>> topics_;
  int next_ = 1;
  std::int64_t version_ = 1;
};

using HeartbeatRequest = protocol::ConsumerGroupHeartbeatRequest;
using HeartbeatResponse = protocol::ConsumerGroupHeartbeatResponse;

// Where clients send their heartbeats.
class HeartbeatDoor {
 public:
  virtual ~HeartbeatDoor() = default;
  virtual HeartbeatResponse send(const HeartbeatRequest& request, std::int16_t version = 1) = 0;
};

class World : public HeartbeatDoor {
 public:
  World();

  FakeTopics topics;
  Settings settings;
  std::int64_t now_ms = 1'000'000;
  std::unique_ptr<ConsumerGroup> group;  // null: there is none
  std::vector<Record> log;
  struct Running {
    std::int64_t due_ms = 0;
    std::int32_t member_epoch = 0;
  };
  std::map<std::pair<TimerChange::Kind, std::string>, Running> timers;

  Surroundings around() const { return {topics, settings, now_ms}; }
  HeartbeatResponse send(const HeartbeatRequest& request, std::int16_t version = 1) override;
  // As a driver does with every outcome.
  void take(const Outcome& outcome);
  // The coordinator begins anew: all that is left is the log.
  void restart();
  // Lets time pass; what is due happens.
  void pass(std::int64_t ms);
  void topics_changed() {
    if (group) group->request_refresh();
  }

  const Member& member(const std::string& id) const { return *group->find(id); }
  Partitions assigned(const std::string& id) const { return without_epochs(member(id).assigned); }
  // What is broken; empty: nothing.
  std::string problem() const;
  // Reads the log anew: all of it, and as a cleaner would leave it.
  std::string replay_problem() const;

 private:
  // `cleaned`: without what a later record of the same key replaced.
  std::unique_ptr<ConsumerGroup> replayed(bool cleaned) const;
  void set_timers(const std::vector<TimerChange>& changes);

  std::int64_t fresh_ids_ = 0;
  std::int32_t last_epoch_ = 0;
  std::string epoch_problem_;
};

HeartbeatRequest join_request(const std::string& member_id, std::vector<std::string> names);
HeartbeatRequest beat(const std::string& member_id, std::int32_t epoch);
HeartbeatRequest beat_owning(const std::string& member_id, std::int32_t epoch,
                             const Partitions& owned);
Partitions assignment_of(const HeartbeatResponse& response);
inline protocol::ErrorCode error_of(const HeartbeatResponse& response) {
  return static_cast<protocol::ErrorCode>(response.error_code);
}

// A client as Kafka's Java consumer behaves: gives up first what it is not to have any more, says
// so, and takes what is new.
class FakeClient {
 public:
  std::string id;
  std::optional<std::string> instance_id;
  std::vector<std::string> names;
  std::string regex;
  std::string assignor;
  std::int32_t epoch = 0;
  Partitions owned;
  bool wants_changed = false;  // names or regex, since they were last told

  // The next heartbeat. `lost`: its answer does not arrive.
  void beat(HeartbeatDoor& door, bool lost = false);
  void leave(HeartbeatDoor& door, std::int32_t how = leaving_epoch);
  protocol::ErrorCode last_error = protocol::ErrorCode::none;

 private:
  void on_answer(const HeartbeatResponse& response);
  std::optional<Partitions> told_;  // the partitions that it last said it owns
};

}  // namespace broker::groups::consumer
