// StartMirrorTopics, StopMirrorTopics, PauseMirrorTopics, ResumeMirrorTopics, RecoverMirrorTopics
// of KIP-1279, version 0. Each answers when the wish is durable; DescribeClusterMirrors tells when
// it came true. Deviations: stop is allowed from every state (the KIP refuses it while FAILED,
// which is when it is needed), the pausing requests take patterns among the names, and state_offset
// is ignored because only one broker looks and decides.
#include "broker/api/handlers.h"
#include "broker/api/mirror_answer.h"
#include "broker/broker.h"
#include "broker/shard.h"
#include "protocol/messages/pause_mirror_topics.gen.h"
#include "protocol/messages/recover_mirror_topics.gen.h"
#include "protocol/messages/resume_mirror_topics.gen.h"
#include "protocol/messages/start_mirror_topics.gen.h"
#include "protocol/messages/stop_mirror_topics.gen.h"

namespace broker::api {

namespace {

template <class Topics>
std::vector<std::string> names_of(const Topics& topics) {
  std::vector<std::string> names;
  for (const auto& topic : topics) names.push_back(topic.topic_name);
  return names;
}

// The KIP calls a topic's name `name` in all answers but one.
template <class Topic>
std::string& name_field(Topic& topic) {
  if constexpr (requires { topic.topic_name; }) {
    return topic.topic_name;
  } else {
    return topic.name;
  }
}

template <class Message>
Message answer(const mirror::TopicsOutcome& outcome) {
  Message message;
  set_outcome(message, outcome.outcome);
  for (const mirror::TopicOutcome& topic : outcome.topics) {
    typename Message::Topic line;
    name_field(line) = topic.topic;
    set_outcome(line, topic.outcome);
    message.topics.push_back(std::move(line));
  }
  return message;
}

using Select = boost::asio::awaitable<mirror::TopicsOutcome> (mirror::Coordinator::*)(
    std::string, mirror::TopicSelection);

// Pause, resume and recover differ in their messages and in the call alone.
template <class In, class Out>
Task<Response> select_topics(Broker& broker, Request request, Select call) {
  const auto message = decode_request<In>(request);
  if (!message) co_return malformed();
  auto run = [call, mirror = message->mirror_name,
              selection = selection_of(names_of(message->topics))](mirror::Coordinator& mirrors) {
    return (mirrors.*call)(mirror, selection);
  };
  const mirror::TopicsOutcome outcome = co_await with_mirrors(broker, std::move(run));
  co_return respond(request, answer<Out>(outcome));
}

}  // namespace

Task<Response> start_mirror_topics(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::StartMirrorTopicsRequest>(request);
  if (!message) co_return malformed();
  mirror::StartTopics what;
  what.names = names_of(message->topics);
  what.include_patterns = message->include_patterns;
  what.exclude_patterns = message->exclude_patterns;
  auto run = [mirror = message->mirror_name, what](mirror::Coordinator& mirrors) {
    return mirrors.start_topics(mirror, what);
  };
  const mirror::TopicsOutcome outcome = co_await with_mirrors(broker, std::move(run));
  co_return respond(request, answer<protocol::StartMirrorTopicsResponse>(outcome));
}

Task<Response> stop_mirror_topics(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::StopMirrorTopicsRequest>(request);
  if (!message) co_return malformed();
  mirror::TopicSelection what;
  what.names = names_of(message->topics);
  what.patterns = message->patterns;
  auto run = [mirror = message->mirror_name, what](mirror::Coordinator& mirrors) {
    return mirrors.stop_topics(mirror, what);
  };
  const mirror::TopicsOutcome outcome = co_await with_mirrors(broker, std::move(run));
  co_return respond(request, answer<protocol::StopMirrorTopicsResponse>(outcome));
}

Task<Response> pause_mirror_topics(Broker& broker, Shard&, Request request) {
  return select_topics<protocol::PauseMirrorTopicsRequest, protocol::PauseMirrorTopicsResponse>(
      broker, std::move(request), &mirror::Coordinator::pause_topics);
}

Task<Response> resume_mirror_topics(Broker& broker, Shard&, Request request) {
  return select_topics<protocol::ResumeMirrorTopicsRequest, protocol::ResumeMirrorTopicsResponse>(
      broker, std::move(request), &mirror::Coordinator::resume_topics);
}

Task<Response> recover_mirror_topics(Broker& broker, Shard&, Request request) {
  return select_topics<protocol::RecoverMirrorTopicsRequest, protocol::RecoverMirrorTopicsResponse>(
      broker, std::move(request), &mirror::Coordinator::recover_topics);
}

}  // namespace broker::api
