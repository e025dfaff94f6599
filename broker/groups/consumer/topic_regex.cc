#include "broker/groups/consumer/topic_regex.h"

#include <re2/re2.h>

#include <memory>

namespace broker::groups::consumer {
namespace {

constexpr std::int64_t topic_regex_memory_bytes_max = 8 << 20;

std::unique_ptr<const re2::RE2> compile_topic_regex(const std::string& regex) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(topic_regex_memory_bytes_max);
  return std::make_unique<const re2::RE2>(regex, options);
}

}  // namespace

std::optional<std::string> problem_of_regex(const std::string& regex) {
  const std::unique_ptr<const re2::RE2> compiled = compile_topic_regex(regex);
  if (compiled->ok()) return std::nullopt;
  return compiled->error();
}

std::map<std::string, TopicNames> resolve_regexes(const std::vector<std::string>& regexes,
                                                  const TopicsView& topics) {
  std::map<std::string, TopicNames> found;
  std::vector<std::pair<std::unique_ptr<const re2::RE2>, TopicNames*>> usable;
  for (const std::string& regex : regexes) {
    TopicNames& names = found[regex];
    std::unique_ptr<const re2::RE2> compiled = compile_topic_regex(regex);
    if (compiled->ok()) usable.emplace_back(std::move(compiled), &names);
  }
  topics.for_each_name([&usable](const std::string& name) {
    for (const auto& [regex, names] : usable) {
      if (re2::RE2::FullMatch(name, *regex)) names->insert(name);
    }
  });
  return found;
}

std::vector<bool> match_regex(const std::string& regex, const std::vector<std::string>& names) {
  std::vector<bool> matches(names.size());
  const std::unique_ptr<const re2::RE2> compiled = compile_topic_regex(regex);
  for (std::size_t i = 0; compiled->ok() && i < names.size(); ++i)
    matches[i] = re2::RE2::FullMatch(names[i], *compiled);
  return matches;
}

}  // namespace broker::groups::consumer
