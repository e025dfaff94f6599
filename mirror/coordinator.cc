#include "mirror/coordinator.h"

#include <utility>

#include "mirror/coordinator_body.h"
#include "protocol/base/log.h"

namespace mirror {

using boost::asio::awaitable;

Coordinator::Body::Body(Target& target, CoordinatorOptions options)
    : target_(target), options_(options), store_(target), states_(store_, target.executor(0)) {}

Coordinator::Body::TaskPtr Coordinator::Body::make_task(MirrorDefinition definition,
                                                        MirrorConfig config) {
  auto task = std::make_shared<MirrorTask>(target_, store_, states_, options_,
                                           std::move(definition), std::move(config));
  tasks_[task->name()] = task;
  return task;
}

awaitable<base::Result<void>> Coordinator::Body::start() {
  CO_TRY_VOID(co_await store_.replay());
  std::vector<PartitionKey> orphans = store_.keys();
  for (MirrorDefinition& definition : target_.mirrors()) {
    std::erase_if(orphans, [&](const PartitionKey& key) { return key.mirror == definition.name; });
    ParsedConfig parsed = parse_mirror_config(definition.configs);
    // Saved by another release perhaps: what can be read holds, so that stopping still works.
    if (!parsed.outcome.ok())
      base::logger("mirror").error("{}: {}", definition.name, parsed.outcome.message);
    const TaskPtr task = make_task(std::move(definition), std::move(parsed.config));
    co_await task->start();
  }
  // Of mirrors that were deleted just before a crash.
  co_await forget_all(std::move(orphans));
  ready_ = true;
  co_return boost::system::in_place_value;
}

awaitable<void> Coordinator::Body::stop() {
  stopping_ = true;
  ready_ = false;
  while (!tasks_.empty()) {
    const TaskPtr task = tasks_.begin()->second;
    tasks_.erase(tasks_.begin());
    co_await task->stop();
  }
}

awaitable<void> Coordinator::Body::forget_all(std::vector<PartitionKey> keys) {
  for (const PartitionKey& key : keys) {
    const auto forgotten = co_await store_.forget(key);
    if (!forgotten)  // found again, and tried again, at the next start
      base::logger("mirror").error("{}: a state record cannot be removed: {}", key.mirror,
                                   forgotten.error().message());
  }
}

Coordinator::Coordinator(Target& target, CoordinatorOptions options)
    : body_(std::make_unique<Body>(target, options)) {}
Coordinator::~Coordinator() = default;

awaitable<base::Result<void>> Coordinator::start() {
  return body_->start();
}
awaitable<void> Coordinator::stop() {
  return body_->stop();
}
awaitable<Outcome> Coordinator::create(std::string mirror,
                                       std::map<std::string, std::string> configs) {
  return body_->create(std::move(mirror), std::move(configs));
}
awaitable<TopicsOutcome> Coordinator::start_topics(std::string mirror, StartTopics what) {
  return body_->start_topics(std::move(mirror), std::move(what));
}
awaitable<TopicsOutcome> Coordinator::stop_topics(std::string mirror, TopicSelection what) {
  return body_->stop_topics(std::move(mirror), std::move(what));
}
awaitable<TopicsOutcome> Coordinator::pause_topics(std::string mirror, TopicSelection what) {
  return body_->pause_topics(std::move(mirror), std::move(what));
}
awaitable<TopicsOutcome> Coordinator::resume_topics(std::string mirror, TopicSelection what) {
  return body_->resume_topics(std::move(mirror), std::move(what));
}
awaitable<TopicsOutcome> Coordinator::recover_topics(std::string mirror, TopicSelection what) {
  return body_->recover_topics(std::move(mirror), std::move(what));
}
awaitable<Outcome> Coordinator::remove(std::string mirror) {
  return body_->remove(std::move(mirror));
}
awaitable<std::vector<MirrorListing>> Coordinator::list(ListFilter filter) {
  return body_->list(std::move(filter));
}
awaitable<std::vector<MirrorDescription>> Coordinator::describe(DescribeFilter filter) {
  return body_->describe(std::move(filter));
}
awaitable<CoordinatorTotals> Coordinator::totals() {
  return body_->totals();
}

}  // namespace mirror
