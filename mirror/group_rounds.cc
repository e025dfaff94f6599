#include "mirror/group_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <utility>

#include "protocol/base/log.h"

namespace mirror {
namespace {

using namespace std::chrono_literals;

// How often it is looked whether there is something to do.
constexpr std::chrono::milliseconds group_idle_pause = 1000ms;
// After a round that left something: sooner than the refresh, and the less soon the more often.
constexpr std::chrono::milliseconds group_pause_min = 2000ms;
// The partitions of one failover come one after the other.
constexpr std::chrono::milliseconds gather_pause = 20ms;
constexpr std::chrono::milliseconds last_round_again = 200ms;
constexpr int last_rounds_max = 3;
// In one request, and in one commit.
constexpr std::size_t groups_per_request = 100;
// Of one mirror. Ten times what Kafka is known to be run with.
constexpr std::size_t groups_max = 200'000;

std::int64_t monotonic_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             base::Clock::now().time_since_epoch())
      .count();
}

std::string answered(std::int16_t error) {
  return kafka_error(error).message();
}

bool passes(std::int16_t error) {
  return protocol::is_retriable(static_cast<protocol::ErrorCode>(error));
}

}  // namespace

struct GroupRounds::Round {
  // The last round of these partitions, or else a periodic one.
  std::optional<GroupPartitions> last;
  std::set<std::string> topics;  // that are the same at the source
  std::map<base::NodeId, std::vector<std::string>> names;
  std::set<std::string> seen;
  bool complete = true;    // every broker listed its groups
  bool may_pass = false;   // something failed that another round may get
  bool not_ready = false;  // partitions that are not being copied yet, or not now
  bool overdue = false;    // of a last round: its time is over
  std::size_t failed = 0;  // groups
  GroupProgress progress;
  std::string problem;
};

GroupRounds::GroupRounds(GroupHost& host, Target& target, TaskGroup& tasks)
    : host_(host),
      target_(target),
      tasks_(tasks),
      timer_(target.executor(0)),
      settled_(target.executor(0)),
      idle_(target.executor(0)) {}

GroupRounds::~GroupRounds() = default;

void GroupRounds::close() {
  closed_ = true;
  if (client_) client_->close();
  timer_.cancel();
  settled_.cancel();
  idle_.cancel();
}

void GroupRounds::wake() {
  woken_ = true;
  timer_.cancel();
}

bool GroupRounds::wanted() const {
  return !host_.config().group_include.empty();
}

boost::asio::awaitable<void> GroupRounds::sleep(base::Timer& timer,
                                                std::chrono::milliseconds time) {
  timer.expires_after(time);
  co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

// ---- Periodic rounds.

boost::asio::awaitable<void> GroupRounds::run() {
  while (!closed_) {
    woken_ = false;
    auto pause = group_idle_pause;
    if (wanted() && host_.source_answers() && !settling_) {
      running_ = true;
      interrupted_ = false;
      pause = co_await periodic_round();
      running_ = false;
      idle_.cancel();
    }
    if (!closed_ && !woken_) co_await sleep(timer_, pause);
  }
}

boost::asio::awaitable<std::chrono::milliseconds> GroupRounds::periodic_round() {
  Round round;
  co_await perform(round);
  if (closed_ || interrupted_) co_return group_idle_pause;
  finish(round);
  co_return next_pause(round);
}

// What was left undone is looked at again sooner than at the next refresh, and the less soon the
// longer it stays so.
std::chrono::milliseconds GroupRounds::next_pause(const Round& round) {
  constexpr int doublings_max = 10;
  const bool unfinished =
      round.may_pass || round.progress.clamped > 0 || round.not_ready || round.topics.empty();
  if (!unfinished) unfinished_rounds_ = 0;
  const auto refresh = host_.refresh_interval();
  if (!unfinished) return refresh;
  return std::min(refresh, group_pause_min * (1 << std::min(unfinished_rounds_++, doublings_max)));
}

// ---- The last round.

boost::asio::awaitable<void> GroupRounds::settle(std::string topic, GroupPartition at) {
  if (closed_ || !wanted() || host_.config().group_stop_timeout == 0ms) co_return;
  const std::uint64_t turn = ++turns_;
  waiting_.insert_or_assign({std::move(topic), at.id.partition}, Waiter{at, turn});
  if (!std::exchange(settling_, true)) tasks_.spawn("mirror groups' last round", settle_loop());
  while (!closed_ && settled_turn_ < turn) {
    settled_.expires_at(base::Clock::time_point::max());
    co_await settled_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

boost::asio::awaitable<void> GroupRounds::settle_loop() {
  base::Timer gather(target_.executor(0));
  while (!closed_ && !waiting_.empty()) {
    co_await sleep(gather, gather_pause);
    // What a periodic round commits is committed before the last one looks; what it asks is not
    // waited for.
    interrupted_ = true;
    if (running_ && client_) client_->close();
    while (running_ && !closed_) {
      idle_.expires_at(base::Clock::time_point::max());
      co_await idle_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    if (closed_) break;
    const std::uint64_t turn = turns_;
    auto batch = std::exchange(waiting_, {});
    for (const auto& [place, waiter] : batch) memory_.forget(waiter.at.id);
    co_await last_round(std::move(batch));
    settled_turn_ = turn;
    settled_.cancel();
  }
  settling_ = false;
}

boost::asio::awaitable<void> GroupRounds::last_round(
    std::map<std::pair<std::string, std::int32_t>, Waiter> batch) {
  auto& log = base::logger("mirror");
  if (!host_.source_answers()) {
    note_problem("the source does not answer: the group offsets stay as the last round left them");
    co_return;
  }
  const auto limit = host_.config().group_stop_timeout;
  client_ = std::make_unique<SourceClient>(target_.executor(0), host_.groups_client_options(limit));
  Round round;
  // Outlived by the timer's handler perhaps.
  const auto over = std::make_shared<bool>(false);
  base::Timer deadline(target_.executor(0)), pause(target_.executor(0));
  deadline.expires_after(limit);
  deadline.async_wait([this, over, &round](boost::system::error_code error) {
    if (error || *over) return;
    round.overdue = true;
    if (client_) client_->close();
  });
  for (int n = 0; n < last_rounds_max && !closed_ && !round.overdue; ++n) {
    if (n > 0) co_await sleep(pause, last_round_again);
    if (closed_ || round.overdue) break;
    round = Round{};
    round.last.emplace();
    for (const auto& [place, waiter] : batch) round.last->emplace(place, waiter.at);
    co_await perform(round);
    if (!round.may_pass) break;
  }
  *over = true;
  client_.reset();
  if (closed_) co_return;
  if (round.overdue)
    round.problem = fmt::format(
        "the source did not tell all offsets within {} ms (groups.stop.timeout.ms): the others "
        "stay as the last round left them",
        limit.count());
  finish(round);
  log.info("{}: {} group offsets settled for the failover of {} partitions, {} of them clamped{}",
           host_.name(), round.progress.offsets, batch.size(), round.progress.clamped,
           round.failed > 0 ? fmt::format(", {} groups failed", round.failed) : "");
}

// ---- One round.

boost::asio::awaitable<void> GroupRounds::perform(Round& round) {
  if (!client_)
    client_ = std::make_unique<SourceClient>(
        target_.executor(0), host_.groups_client_options(host_.config().request_timeout));
  if (!co_await find_topics(round)) co_return;
  co_await find_groups(round);
  const auto names = std::exchange(round.names, {});
  for (const auto& [node, groups] : names) {
    if (closed_ || (interrupted_ && !round.last)) co_return;
    co_await copy_groups(round, node, groups);
  }
  // A client that was closed, by us or by a deadline, is of no more use.
  if (round.problem.empty()) co_return;
  if (!round.last) client_.reset();
}

// The topics that have the same id at the source; false: there are none, or it does not answer.
boost::asio::awaitable<bool> GroupRounds::find_topics(Round& round) {
  std::map<std::string, LocalTopic> mine;
  for (LocalTopic& topic : host_.topics())
    if (round.last || topic.desired_state == static_cast<std::int8_t>(MirrorState::mirroring))
      mine.emplace(topic.name, topic);
  if (round.last)
    std::erase_if(mine, [&round](const auto& entry) {
      const auto first = round.last->lower_bound({entry.first, 0});
      return first == round.last->end() || first->first.first != entry.first;
    });
  if (mine.empty()) co_return false;
  std::vector<std::string> names;
  for (const auto& [name, topic] : mine) names.push_back(name);
  const auto metadata = co_await client_->metadata(std::move(names));
  if (!metadata) {
    round.problem = client_->describe(metadata.error());
    round.may_pass = true;
    round.complete = false;
    client_.reset();
    co_return false;
  }
  for (const SourceMetadata::Topic& topic : metadata->topics) {
    const auto found = mine.find(topic.name);
    if (found == mine.end() || topic.error != 0) continue;
    if (is_same_topic(found->second.id, found->second.source_id, topic.id))
      round.topics.insert(topic.name);
  }
  for (const auto& [node, endpoint] : metadata->brokers) round.names[node];
  co_return !round.topics.empty();
}

// Each broker lists the groups that it coordinates, so that none has to be looked up.
boost::asio::awaitable<void> GroupRounds::find_groups(Round& round) {
  std::vector<base::NodeId> nodes;
  for (const auto& [node, names] : round.names) nodes.push_back(node);
  for (const base::NodeId node : nodes) {
    if (closed_ || (interrupted_ && !round.last)) co_return;
    const auto listed = co_await client_->groups(node);
    if (!listed) {
      round.problem =
          fmt::format("the groups of broker {}: {}", node, client_->describe(listed.error()));
      round.may_pass = true;
      round.complete = false;
      continue;
    }
    for (const ListedGroup& group : *listed) {
      if (!is_consumer_group(group.protocol_type, group.type) ||
          !host_.config().groups.includes(group.name))
        continue;
      if (round.seen.size() >= groups_max) {
        round.problem = fmt::format(
            "the source has more than {} groups: name fewer of them in "
            "groups.include",
            groups_max);
        co_return;
      }
      if (round.seen.insert(group.name).second) round.names[node].push_back(group.name);
    }
  }
}

// First those that the copy held back so far: they gain the most should the time run out.
boost::asio::awaitable<void> GroupRounds::copy_groups(Round& round, base::NodeId node,
                                                      std::vector<std::string> names) {
  std::ranges::partition(names, [this](const std::string& name) {
    const auto known = groups_.find(name);
    return known != groups_.end() && known->second.progress.clamped > 0;
  });
  for (std::size_t at = 0; at < names.size(); at += groups_per_request) {
    if (closed_ || round.overdue || (interrupted_ && !round.last)) co_return;
    const std::size_t until = std::min(names.size(), at + groups_per_request);
    std::vector<std::string> some(names.begin() + static_cast<std::ptrdiff_t>(at),
                                  names.begin() + static_cast<std::ptrdiff_t>(until));
    auto answers = co_await client_->group_offsets(node, some);
    if (!answers) {
      const std::string problem = client_->describe(answers.error());
      round.problem = fmt::format("the offsets at broker {}: {}", node, problem);
      round.may_pass = true;
      round.failed += names.size() - at;
      for (std::size_t i = at; i < names.size(); ++i) groups_[names[i]].error = problem;
      co_return;
    }
    co_await commit(round, std::move(*answers));
  }
}

boost::asio::awaitable<GroupPartitions> GroupRounds::partitions_of(Round& round) {
  GroupPartitions here;
  if (round.last) {
    here = *round.last;
  } else {
    for (PartitionSnapshot& one : co_await host_.snapshot()) {
      if (takes_offsets(one.local.state))
        here.emplace(std::pair(std::move(one.topic), one.partition), one.offsets);
      else if (round.topics.contains(one.topic))
        round.not_ready = true;
    }
  }
  std::erase_if(here,
                [&round](const auto& entry) { return !round.topics.contains(entry.first.first); });
  co_return here;
}

// From the look at the partitions to the commit there is no other suspension: a failover that
// begins in between waits until the commit is done.
boost::asio::awaitable<void> GroupRounds::commit(Round& round, std::vector<GroupAnswer> answers) {
  const GroupPartitions here = co_await partitions_of(round);
  if (closed_ || (interrupted_ && !round.last)) co_return;
  std::vector<SourceGroup> groups;
  std::vector<std::string> failed;
  for (GroupAnswer& answer : answers) {
    if (answer.error != 0) {
      fail_group(round, answer.group.name, answered(answer.error), passes(answer.error));
      failed.push_back(answer.group.name);
    }
    groups.push_back(std::move(answer.group));
  }
  const std::int64_t now_ms = monotonic_ms();
  std::vector<PlannedGroup> plan = plan_groups(groups, here, memory_, now_ms);
  std::vector<GroupCommit> commits;
  std::vector<std::size_t> places;  // in the plan
  for (std::size_t i = 0; i < plan.size(); ++i) {
    note_progress(round, plan[i]);
    if (plan[i].commit.offsets.empty()) continue;
    commits.push_back(plan[i].commit);
    places.push_back(i);
  }
  std::vector<base::Error> outcomes;
  if (!commits.empty()) outcomes = co_await target_.commit_group_offsets(std::move(commits));
  for (std::size_t i = 0; i < outcomes.size() && i < places.size(); ++i) {
    const PlannedGroup& planned = plan[places[i]];
    if (outcomes[i]) {
      fail_group(round, planned.commit.group, outcomes[i].message(),
                 outcomes[i] != TargetErrc::group_has_members);
      failed.push_back(planned.commit.group);
    } else if (!round.last) {
      memory_.remember(planned.commit, now_ms);
    }
  }
  for (const PlannedGroup& planned : plan) {
    if (std::ranges::find(failed, planned.commit.group) != failed.end()) continue;
    Status& status = groups_[planned.commit.group];
    status.error.clear();
    status.synced_ms = base::wall_clock_ms();
  }
}

// A failover of some of the topics says nothing about the others.
void GroupRounds::note_progress(Round& round, const PlannedGroup& planned) {
  Status& status = groups_[planned.commit.group];
  if (!round.last || planned.progress.offsets >= status.progress.offsets)
    status.progress = planned.progress;
  round.progress.offsets += planned.progress.offsets;
  round.progress.clamped += planned.progress.clamped;
}

void GroupRounds::fail_group(Round& round, const std::string& group, std::string problem,
                             bool may_pass) {
  Status& status = groups_[group];
  if (status.error != problem)  // not in every round
    base::logger("mirror").warn("{}: offsets of group {} are not taken over: {}", host_.name(),
                                group, problem);
  status.error = std::move(problem);
  ++round.failed;
  round.may_pass |= may_pass;
}

// ---- What is shown.

void GroupRounds::finish(const Round& round) {
  note_problem(round.problem);
  // Gone at the source. What they committed stays here.
  if (round.complete && !round.last && !round.topics.empty())
    std::erase_if(groups_, [this, &round](const auto& entry) {
      const bool gone = !round.seen.contains(entry.first);
      if (gone) memory_.forget(entry.first);
      return gone;
    });
}

void GroupRounds::note_problem(std::string problem) {
  if (!problem.empty() && problem != problem_)
    base::logger("mirror").warn("{}: consumer groups: {}", host_.name(), problem);
  problem_ = std::move(problem);
}

std::vector<GroupDescription> GroupRounds::describe() const {
  std::vector<GroupDescription> all;
  for (const auto& [name, status] : groups_) {
    GroupDescription one{.name = name,
                         .offsets = status.progress.offsets,
                         .clamped = status.progress.clamped,
                         .behind = status.progress.behind,
                         .synced_ms = status.synced_ms,
                         .error_message = {}};
    if (!status.error.empty()) one.error_message = status.error;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace mirror
