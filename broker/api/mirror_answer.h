// What the handlers of the mirror control API have in common.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/catalog.h"
#include "mirror/control_types.h"
#include "mirror/coordinator.h"

namespace broker::api {

// Names and patterns come in one list; what no topic can be called is a pattern.
inline mirror::TopicSelection selection_of(std::vector<std::string> names_or_patterns) {
  mirror::TopicSelection selection;
  for (std::string& word : names_or_patterns)
    (is_valid_topic_name(word) ? selection.names : selection.patterns).push_back(std::move(word));
  return selection;
}

inline std::optional<std::string> message_of(const mirror::Outcome& outcome) {
  if (outcome.ok()) return std::nullopt;
  return outcome.message;
}

template <class Message>
void set_outcome(Message& message, const mirror::Outcome& outcome) {
  message.error_code = outcome.error;
  message.error_message = message_of(outcome);
}

// Runs `call`, a callable that takes the coordinator, where the coordinator lives.
template <class Call>
auto with_mirrors(Broker& broker, Call call) {
  auto job = [&broker, run = std::move(call)] { return run(broker.mirrors()); };
  return on(broker.shard(0), std::move(job));
}

}  // namespace broker::api
