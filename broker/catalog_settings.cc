// The catalog's settings that change while the broker runs: of topics, brokers, groups and clients'
// quotas.
#include <fmt/format.h>

#include <utility>

#include "broker/broker.h"
#include "broker/catalog.h"
#include "broker/catalog_lock.h"
#include "broker/error.h"
#include "protocol/base/log.h"

namespace broker {

namespace {

template <class T>
using Change = boost::asio::awaitable<base::Result<T>>;

constexpr std::string_view quotas_prefix = "quotas/";
constexpr std::string_view groups_prefix = "groups/";

std::string broker_key(std::optional<base::NodeId> node) {
  return node ? fmt::format("brokers/{}", *node) : "brokers/default";
}

// Names may hold any character, hence their lengths; '*' is the default entity.
std::string quota_key(const storage::QuotaEntity& entity) {
  std::string key(quotas_prefix);
  for (const auto& [type, name] : entity)
    key += name ? fmt::format("{}:{}:{}/", type, name->size(), *name) : fmt::format("{}:*/", type);
  return key;
}

base::Result<ConfigValues> read_configs(storage::MetadataStore& store, const std::string& key) {
  TRY(const auto entry, store.get(key));
  if (!entry) return ConfigValues();
  TRY(const auto record, storage::decode_broker_configs(entry->value));
  ConfigValues known;
  for (const auto& [name, value] : record.values) {
    const Setting* const setting = find_setting(name);
    if (setting != nullptr && setting->dynamic && !value_problem(*setting, value))
      known.emplace(name, value);
    else
      base::logger("broker").warn(
          "{}: {}={} is nothing that this release can set; it is passed over", key, name, value);
  }
  return known;
}

storage::Write write_configs(const std::string& key, const ConfigValues& values) {
  storage::BrokerConfigsRecord record;
  record.values.insert(values.begin(), values.end());
  if (values.empty()) return {key, std::nullopt};
  return {key, storage::encode(record)};
}

}  // namespace

base::Result<void> Catalog::load_settings(Snapshot& into) {
  TRY(auto of_cluster, read_configs(*store_, broker_key(std::nullopt)));
  TRY(auto of_broker, read_configs(*store_, broker_key(broker_.node_id())));
  into.config_ = std::make_shared<const Config>(
      broker_.config().with_changes(std::move(of_cluster), std::move(of_broker)));
  auto quotas = std::make_shared<QuotaTable>();
  TRY(const auto entries, store_->range(quotas_prefix));
  for (const storage::Entry& entry : entries) {
    TRY(const auto record, storage::decode_client_quota(entry.value));
    quotas->emplace(record.entity, record.values);
  }
  into.quotas_ = std::move(quotas);
  auto groups = std::make_shared<GroupConfigs>();
  TRY(const auto of_groups, store_->range(groups_prefix));
  for (const storage::Entry& entry : of_groups) {
    TRY(const auto record, storage::decode_broker_configs(entry.value));
    (*groups)[entry.key.substr(groups_prefix.size())].insert(record.values.begin(),
                                                             record.values.end());
  }
  into.groups_ = std::move(groups);
  return {};
}

Change<TopicPtr> Catalog::alter_topic(std::string name,
                                      Alteration<std::map<std::string, std::string>> change) {
  auto alter = [this, &name, &change]() -> Change<TopicPtr> {
    const auto guard = co_await lock_->take();
    const TopicPtr topic = snapshot_->find(name);
    if (!topic) co_return BrokerErrc::unknown_topic;
    auto configs = change(topic->configs);
    if (!configs || *configs == topic->configs) co_return topic;
    std::vector<Topic> changed = {*topic};
    changed[0].configs = std::move(*configs);
    CO_TRY_VOID(co_await replace_locked(std::move(changed)));
    co_return snapshot_->find(name);
  };
  co_return co_await on(broker_.shard(0), std::move(alter));
}

Change<void> Catalog::alter_broker(bool of_cluster, Alteration<ConfigValues> change) {
  auto alter = [this, of_cluster, &change]() -> Change<void> {
    const auto guard = co_await lock_->take();
    ConfigValues cluster_values = snapshot_->config().of_cluster();
    ConfigValues broker_values = snapshot_->config().of_broker();
    ConfigValues& values = of_cluster ? cluster_values : broker_values;
    auto changed = change(values);
    if (!changed || *changed == values) co_return base::Result<void>();
    values = std::move(*changed);
    const std::string key =
        broker_key(of_cluster ? std::nullopt : std::optional(broker_.node_id()));
    const std::vector<storage::Write> writes = {write_configs(key, values)};
    CO_TRY_VOID(store_->txn({}, writes));
    auto next = std::make_shared<Snapshot>(*snapshot_);
    next->config_ = std::make_shared<const Config>(
        broker_.config().with_changes(std::move(cluster_values), std::move(broker_values)));
    // Any of them may take a default from what was changed.
    std::vector<TopicPtr> touched;
    for (const auto& [name, topic] : next->topics()) touched.push_back(topic);
    co_await publish(std::move(next), std::move(touched));
    co_return base::Result<void>();
  };
  co_return co_await on(broker_.shard(0), std::move(alter));
}

Change<void> Catalog::alter_group(std::string name, Alteration<ConfigValues> change) {
  auto alter = [this, &name, &change]() -> Change<void> {
    const auto guard = co_await lock_->take();
    auto groups = std::make_shared<GroupConfigs>(*snapshot_->groups());
    ConfigValues& values = (*groups)[name];
    auto changed = change(values);
    if (!changed || *changed == values) co_return base::Result<void>();
    values = std::move(*changed);
    const std::vector<storage::Write> writes = {
        write_configs(std::string(groups_prefix) + name, values)};
    CO_TRY_VOID(store_->txn({}, writes));
    if (values.empty()) groups->erase(name);
    auto next = std::make_shared<Snapshot>(*snapshot_);
    next->groups_ = std::move(groups);
    co_await publish(std::move(next), std::vector<TopicPtr>());
    co_return base::Result<void>();
  };
  co_return co_await on(broker_.shard(0), std::move(alter));
}

Change<void> Catalog::alter_quotas(std::map<storage::QuotaEntity, QuotaChange> changes) {
  auto alter = [this, &changes]() -> Change<void> {
    const auto guard = co_await lock_->take();
    auto quotas = std::make_shared<QuotaTable>(snapshot_->quotas());
    std::vector<storage::Write> writes;
    for (const auto& [entity, values] : changes) {
      QuotaValues& present = (*quotas)[entity];
      for (const auto& [key, value] : values) {
        if (value)
          present[key] = *value;
        else
          present.erase(key);
      }
      storage::Write write = {quota_key(entity), std::nullopt};
      storage::ClientQuotaRecord record;
      record.entity = entity;
      record.values = present;
      if (!present.empty()) write.value = storage::encode(record);
      if (present.empty()) quotas->erase(entity);
      writes.push_back(std::move(write));
    }
    if (writes.empty()) co_return base::Result<void>();
    CO_TRY_VOID(store_->txn({}, writes));
    auto next = std::make_shared<Snapshot>(*snapshot_);
    next->quotas_ = std::move(quotas);
    co_await publish(std::move(next), std::vector<TopicPtr>());
    co_return base::Result<void>();
  };
  co_return co_await on(broker_.shard(0), std::move(alter));
}

}  // namespace broker
