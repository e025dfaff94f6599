// The catalog as the group coordinator's pure core sees it. Belongs to one shard.
#pragma once
#include "broker/catalog.h"
#include "broker/groups/consumer/topics.h"

namespace broker {

class GroupTopics : public groups::consumer::TopicsView {
 public:
  explicit GroupTopics(SnapshotPtr catalog) : catalog_(std::move(catalog)) {}

  const SnapshotPtr& catalog() const { return catalog_; }

  std::optional<groups::consumer::TopicFacts> find(std::string_view name) const override;
  std::optional<groups::consumer::TopicFacts> find(const base::Uuid& id) const override;
  void for_each_name(const std::function<void(const std::string&)>& visit) const override;
  std::int64_t version() const override;

 private:
  SnapshotPtr catalog_;
  mutable std::optional<std::int64_t> version_;  // found when it is first asked for
};

}  // namespace broker
