// Expressions that stand for topics, in the dialect of RE2, which Kafka's brokers use as well. They
// come from clients, so what they cost is bounded: in time by RE2's nature, in memory here.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/groups/consumer/topics.h"

namespace broker::groups::consumer {

// Nothing: it can be used.
std::optional<std::string> problem_of_regex(const std::string& regex);

// The topics whose whole name matches. One that cannot be used stands for none.
std::map<std::string, TopicNames> resolve_regexes(const std::vector<std::string>& regexes,
                                                  const TopicsView& topics);

// Which of the names match as a whole. One that cannot be used matches none.
std::vector<bool> match_regex(const std::string& regex, const std::vector<std::string>& names);

}  // namespace broker::groups::consumer
