// The commands of the mirror control API. Each makes a wish durable and sends it on its way; that
// it came true is seen in describe().
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "mirror/coordinator_body.h"
#include "protocol/base/log.h"

namespace mirror {

using boost::asio::awaitable;

namespace {

constexpr auto paused = static_cast<std::int8_t>(MirrorState::paused);
constexpr auto stopped = static_cast<std::int8_t>(MirrorState::stopped);

Outcome refuse(std::int16_t error, std::string text) {
  return {error, std::move(text)};
}

Outcome storage_failure(const base::Error& error) {
  return refuse(
      control_error::kafka_storage_error,
      fmt::format("it could not be kept: {}; see the log of the broker", error.message()));
}

// ---- May this topic be started, stopped …? An outcome without error means yes, or done already.

Outcome may_start(const LocalTopic& topic) {
  if (topic.desired_state == paused)
    return refuse(control_error::invalid_cluster_mirror_state,
                  fmt::format("topic {} is PAUSED: resume it", topic.name));
  return {};
}

Outcome may_stop(const LocalTopic&) {
  return {};
}

Outcome may_pause(const LocalTopic& topic) {
  if (topic.desired_state == stopped)
    return refuse(control_error::mirror_topic_being_stopped,
                  fmt::format("topic {} is STOPPED: start it to mirror it again", topic.name));
  return {};
}

Outcome may_resume(const LocalTopic& topic) {
  if (topic.desired_state != paused)
    return refuse(control_error::mirror_topic_not_paused,
                  fmt::format("topic {} is not PAUSED: there is nothing to resume", topic.name));
  return {};
}

Outcome may_recover(const LocalTopic& topic) {
  if (topic.desired_state == stopped)
    return refuse(control_error::invalid_cluster_mirror_state,
                  fmt::format("topic {} is STOPPED: there is nothing to recover", topic.name));
  return {};
}

void add_new(std::vector<std::string>& list, const std::string& item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(item);
}

// The topics outcome as a whole is the first that failed.
void sum_up(TopicsOutcome& answer) {
  for (const TopicOutcome& topic : answer.topics)
    if (!topic.outcome.ok()) {
      answer.outcome = topic.outcome;
      return;
    }
}

}  // namespace

Coordinator::Body::TaskPtr Coordinator::Body::find(const std::string& mirror, Outcome& why) const {
  if (!ready_) {
    why = refuse(control_error::coordinator_load_in_progress,
                 "mirrors are still being loaded, or the broker ends: try again");
    return nullptr;
  }
  const auto found = tasks_.find(mirror);
  if (found != tasks_.end()) return found->second;
  why = refuse(control_error::unknown_cluster_mirror,
               fmt::format("there is no mirror '{}': list them to see which there are", mirror));
  return nullptr;
}

awaitable<Outcome> Coordinator::Body::create(std::string mirror, ConfigMap configs) {
  Outcome why;
  if (find(mirror, why))
    co_return refuse(control_error::cluster_mirror_already_exists,
                     fmt::format("a mirror '{}' exists already: take another name", mirror));
  if (why.error != control_error::unknown_cluster_mirror) co_return why;
  if (!is_valid_mirror_name(mirror))
    co_return refuse(control_error::invalid_request,
                     "a mirror's name has 1 to 249 characters out of A-Z a-z 0-9 . _ - and is "
                     "neither . nor ..");
  configs = shorten_names(configs);
  ParsedConfig parsed = parse_mirror_config(configs);
  if (!parsed.outcome.ok()) co_return parsed.outcome;
  if (!creating_.insert(mirror).second)
    co_return refuse(control_error::cluster_mirror_already_exists,
                     fmt::format("a mirror '{}' is just being created", mirror));
  MirrorDefinition definition{.name = mirror, .configs = configs};
  const auto saved = co_await target_.save_mirror(definition);
  creating_.erase(mirror);
  if (!saved) co_return storage_failure(saved.error());
  if (stopping_) co_return Outcome{};  // the next start finds it
  base::logger("mirror").info("{}: created, source {}", mirror,
                              configs[config_key::bootstrap_servers]);
  const TaskPtr task = make_task(std::move(definition), std::move(parsed.config));
  co_await task->start();
  co_return Outcome{};
}

// ---- Which topics a command means.

Coordinator::Body::Choice Coordinator::Body::choose(const MirrorTask& task,
                                                    const TopicSelection& what,
                                                    Outcome (*judge)(const LocalTopic&)) const {
  Choice choice;
  const PatternList patterns(what.patterns);
  if (!patterns.problem().empty()) {
    choice.answer.outcome = refuse(control_error::invalid_regular_expression, patterns.problem());
    return choice;
  }
  const bool all = what.names.empty() && what.patterns.empty();
  std::set<std::string> named(what.names.begin(), what.names.end());
  for (const LocalTopic& topic : task.topics()) {
    const bool by_name = named.erase(topic.name) > 0;
    const bool meant = by_name || all || patterns.matches(topic.name);
    if (!meant) continue;
    Outcome outcome = judge(topic);
    // Of many, those that the command does not fit are left as they are.
    if (!outcome.ok() && !by_name) continue;
    if (outcome.ok()) choice.change.push_back(topic.name);
    choice.answer.topics.push_back({topic.name, std::move(outcome)});
  }
  for (const std::string& name : named)
    choice.answer.topics.push_back(
        {name, refuse(control_error::topic_not_in_cluster_mirror,
                      fmt::format("topic {} does not belong to mirror {}: describe the mirror to "
                                  "see its topics",
                                  name, task.name()))});
  sum_up(choice.answer);
  return choice;
}

awaitable<TopicsOutcome> Coordinator::Body::set_desired(TaskPtr task, Choice choice,
                                                        MirrorState desired) {
  if (!choice.change.empty()) {
    const auto set =
        co_await target_.set_desired_state(choice.change, static_cast<std::int8_t>(desired));
    if (!set) {
      for (TopicOutcome& topic : choice.answer.topics)
        if (topic.outcome.ok()) topic.outcome = storage_failure(set.error());
      sum_up(choice.answer);
      co_return choice.answer;
    }
    base::logger("mirror").info("{}: {} desired for {} topics", task->name(), name(desired),
                                choice.change.size());
  }
  if (!stopping_) co_await task->push_desired();
  co_return choice.answer;
}

// ---- Commands.

awaitable<TopicsOutcome> Coordinator::Body::start_topics(std::string mirror, StartTopics what) {
  TopicsOutcome answer;
  const TaskPtr task = find(mirror, answer.outcome);
  if (!task) co_return answer;
  ConfigMap configs = task->definition().configs;
  std::vector<std::string> include = task->config().include;
  std::vector<std::string> exclude = task->config().exclude;
  TopicSelection selection{.names = {}, .patterns = what.include_patterns};
  std::vector<TopicOutcome> later;  // the source has them, or will
  for (const std::string& wanted : what.names) {
    const auto topic = target_.topic(wanted);
    if (topic && topic->mirror == mirror) {
      selection.names.push_back(wanted);
    } else if (topic && !topic->mirror.empty()) {
      later.push_back(
          {wanted, refuse(control_error::topic_already_in_cluster_mirror,
                          fmt::format("topic {} belongs to mirror {}", wanted, topic->mirror))});
    } else {
      add_new(include, quote_name(wanted));
      later.push_back({wanted, {}});
    }
    std::erase(exclude, wanted);
    std::erase(exclude, quote_name(wanted));
  }
  for (const std::string& pattern : what.include_patterns) {
    add_new(include, pattern);
    std::erase(exclude, pattern);
  }
  for (const std::string& pattern : what.exclude_patterns) {
    add_new(exclude, pattern);
    std::erase(include, pattern);
  }
  configs[config_key::topics_include] = join_list(include);
  configs[config_key::topics_exclude] = join_list(exclude);
  configs.erase(config_key::topics_discovery);
  ParsedConfig parsed = parse_mirror_config(configs);
  if (!parsed.outcome.ok()) co_return TopicsOutcome{parsed.outcome, {}};
  if (configs != task->definition().configs) {
    const auto saved = co_await task->change_config(configs, parsed.config);
    if (!saved) co_return TopicsOutcome{storage_failure(saved.error()), {}};
  }
  Choice choice;
  const bool only_later =
      !what.names.empty() && selection.names.empty() && selection.patterns.empty();
  const bool only_exclude =
      what.names.empty() && what.include_patterns.empty() && !what.exclude_patterns.empty();
  if (!only_later && !only_exclude) choice = choose(*task, selection, may_start);
  std::ranges::move(later, std::back_inserter(choice.answer.topics));
  sum_up(choice.answer);
  answer = co_await set_desired(task, std::move(choice), MirrorState::mirroring);
  task->sync_now();
  co_return answer;
}

awaitable<TopicsOutcome> Coordinator::Body::stop_topics(std::string mirror, TopicSelection what) {
  TopicsOutcome answer;
  const TaskPtr task = find(mirror, answer.outcome);
  if (!task) co_return answer;
  Choice choice = choose(*task, what, may_stop);
  if (choice.answer.outcome.error == control_error::invalid_regular_expression)
    co_return choice.answer;
  // First of all the failover itself; what follows only keeps topics from being discovered later.
  answer = co_await set_desired(task, std::move(choice), MirrorState::stopped);
  ConfigMap configs = task->definition().configs;
  MirrorConfig config = task->config();
  if (what.names.empty() && what.patterns.empty()) {
    configs[config_key::topics_discovery] = "false";
  } else {
    for (const std::string& pattern : what.patterns)
      if (std::erase(config.include, pattern) == 0) add_new(config.exclude, pattern);
    configs[config_key::topics_include] = join_list(config.include);
    configs[config_key::topics_exclude] = join_list(config.exclude);
  }
  ParsedConfig parsed = parse_mirror_config(configs);
  const bool changed = !what.patterns.empty() || what.names.empty();
  if (changed && parsed.outcome.ok() && configs != task->definition().configs && !stopping_) {
    const auto saved = co_await task->change_config(configs, parsed.config);
    if (!saved && answer.outcome.ok()) answer.outcome = storage_failure(saved.error());
  }
  co_return answer;
}

awaitable<TopicsOutcome> Coordinator::Body::pause_topics(std::string mirror, TopicSelection what) {
  TopicsOutcome answer;
  const TaskPtr task = find(mirror, answer.outcome);
  if (!task) co_return answer;
  co_return co_await set_desired(task, choose(*task, what, may_pause), MirrorState::paused);
}

awaitable<TopicsOutcome> Coordinator::Body::resume_topics(std::string mirror, TopicSelection what) {
  TopicsOutcome answer;
  const TaskPtr task = find(mirror, answer.outcome);
  if (!task) co_return answer;
  co_return co_await set_desired(task, choose(*task, what, may_resume), MirrorState::mirroring);
}

awaitable<TopicsOutcome> Coordinator::Body::recover_topics(std::string mirror,
                                                           TopicSelection what) {
  TopicsOutcome answer;
  const TaskPtr task = find(mirror, answer.outcome);
  if (!task) co_return answer;
  const Choice choice = choose(*task, what, may_recover);
  task->recover(choice.change);
  task->sync_now();
  co_return choice.answer;
}

// ---- Delete.

awaitable<bool> Coordinator::Body::all_stopped(TaskPtr task, std::string& culprit) {
  for (const LocalTopic& topic : task->topics())
    if (topic.desired_state != stopped) {
      culprit = topic.name;
      co_return false;
    }
  for (const PartitionSnapshot& partition : co_await task->snapshot())
    if (partition.local.state != MirrorState::stopped) {
      culprit = fmt::format("{}-{}", partition.topic, partition.partition);
      co_return false;
    }
  co_return true;
}

// The topics become ordinary ones first, then the mirror goes, then its records: after a crash in
// between, what is left is either a mirror without topics or records that the next start removes.
awaitable<Outcome> Coordinator::Body::remove(std::string mirror) {
  Outcome why;
  const TaskPtr task = find(mirror, why);
  if (!task) co_return why;
  std::string culprit;
  if (!co_await all_stopped(task, culprit))
    co_return refuse(control_error::cluster_mirror_not_empty,
                     fmt::format("{} is not STOPPED: stop the mirror and wait for that", culprit));
  tasks_.erase(mirror);  // no command reaches it any more
  std::vector<std::string> names;
  for (const LocalTopic& topic : task->topics()) names.push_back(topic.name);
  const auto detached = co_await target_.detach_topics(std::move(names));
  if (!detached) {
    tasks_[mirror] = task;
    co_return storage_failure(detached.error());
  }
  const auto removed = co_await target_.remove_mirror(mirror);
  if (!removed) {
    tasks_[mirror] = task;
    co_return storage_failure(removed.error());
  }
  co_await task->stop();
  co_await forget_all(store_.keys_of(mirror));
  base::logger("mirror").info("{}: deleted", mirror);
  co_return Outcome{};
}

}  // namespace mirror
