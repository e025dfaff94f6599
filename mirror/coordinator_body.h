// The coordinator's insides, shared by coordinator.cc (life), control.cc (commands) and
// describe.cc.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mirror/coordinator.h"
#include "mirror/mirror_task.h"
#include "mirror/state_store.h"

namespace mirror {

class Coordinator::Body {
 public:
  Body(Target& target, CoordinatorOptions options);

  // coordinator.cc
  boost::asio::awaitable<base::Result<void>> start();
  boost::asio::awaitable<void> stop();

  // control.cc
  boost::asio::awaitable<Outcome> create(std::string mirror, ConfigMap configs);
  boost::asio::awaitable<TopicsOutcome> start_topics(std::string mirror, StartTopics what);
  boost::asio::awaitable<TopicsOutcome> stop_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<TopicsOutcome> pause_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<TopicsOutcome> resume_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<TopicsOutcome> recover_topics(std::string mirror, TopicSelection what);
  boost::asio::awaitable<Outcome> remove(std::string mirror);

  // describe.cc
  boost::asio::awaitable<std::vector<MirrorListing>> list(ListFilter filter);
  boost::asio::awaitable<std::vector<MirrorDescription>> describe(DescribeFilter filter);
  boost::asio::awaitable<CoordinatorTotals> totals();

 private:
  using TaskPtr = std::shared_ptr<MirrorTask>;
  // Of the topics that a command means: those to change, and what is already clear of each.
  struct Choice {
    TopicsOutcome answer;
    std::vector<std::string> change;
  };

  // nullptr with an outcome: not there, or not ready.
  TaskPtr find(const std::string& mirror, Outcome& why) const;
  TaskPtr make_task(MirrorDefinition definition, MirrorConfig config);
  Choice choose(const MirrorTask& task, const TopicSelection& what,
                Outcome (*judge)(const LocalTopic&)) const;
  boost::asio::awaitable<TopicsOutcome> set_desired(TaskPtr task, Choice choice,
                                                    MirrorState desired);
  boost::asio::awaitable<void> forget_all(std::vector<PartitionKey> keys);
  boost::asio::awaitable<bool> all_stopped(TaskPtr task, std::string& culprit);

  Target& target_;
  CoordinatorOptions options_;
  StateStore store_;
  PartitionStates states_;
  std::map<std::string, TaskPtr> tasks_;
  std::set<std::string> creating_;
  bool ready_ = false;
  bool stopping_ = false;
};

}  // namespace mirror
