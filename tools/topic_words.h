// Names and patterns as they are given in one list: what no topic can be called is a pattern.
#pragma once
#include <string>
#include <vector>

#include "broker/catalog.h"

namespace tools {

struct TopicWords {
  std::vector<std::string> names;
  std::vector<std::string> patterns;
};

inline TopicWords split_topic_words(std::vector<std::string> words) {
  TopicWords result;
  for (std::string& word : words)
    (broker::is_valid_topic_name(word) ? result.names : result.patterns).push_back(std::move(word));
  return result;
}

}  // namespace tools
