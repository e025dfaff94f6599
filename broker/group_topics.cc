#include "broker/group_topics.h"

namespace broker {
namespace {

groups::consumer::TopicFacts facts_of(const Topic& topic) {
  return {topic.name, topic.id, static_cast<std::int32_t>(topic.partitions.size())};
}

}  // namespace

std::optional<groups::consumer::TopicFacts> GroupTopics::find(std::string_view name) const {
  const TopicPtr topic = catalog_->find(name);
  return topic ? std::optional(facts_of(*topic)) : std::nullopt;
}

std::optional<groups::consumer::TopicFacts> GroupTopics::find(const base::Uuid& id) const {
  const TopicPtr topic = catalog_->find(id);
  return topic ? std::optional(facts_of(*topic)) : std::nullopt;
}

void GroupTopics::for_each_name(const std::function<void(const std::string&)>& visit) const {
  for (const auto& [name, topic] : catalog_->topics()) visit(name);
}

std::int64_t GroupTopics::version() const {
  if (!version_) {
    groups::consumer::TopicNames names;
    for (const auto& [name, topic] : catalog_->topics()) names.insert(names.end(), name);
    version_ = groups::consumer::hash_of_topics(names, *this);
  }
  return *version_;
}

}  // namespace broker
