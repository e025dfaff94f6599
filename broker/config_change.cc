#include "broker/config_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "broker/group_settings.h"

namespace broker {

namespace {

using protocol::ErrorCode;
using Refusal = std::optional<ConfigRefusal>;

Refusal refuse_change(ErrorCode code, std::string message) {
  return ConfigRefusal{code, std::move(message)};
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::size_t from = std::min(list.find_first_not_of(' ', at), comma);
    const std::size_t to = list.find_last_not_of(' ', comma == 0 ? 0 : comma - 1);
    if (from < comma) items.push_back(list.substr(from, to - from + 1));
    at = comma + 1;
  }
  return items;
}

// The list after the change.
std::string changed_list(const ConfigChange& change, const std::string& present) {
  std::vector<std::string> items = split_list(present);
  for (const std::string& one : split_list(*change.value)) {
    const auto at = std::ranges::find(items, one);
    if (change.operation == ConfigOperation::append && at == items.end())
      items.push_back(one);
    else if (change.operation == ConfigOperation::subtract && at != items.end())
      items.erase(at);
  }
  return fmt::format("{}", fmt::join(items, ","));
}

bool is_list_operation(const ConfigChange& change) {
  return change.operation == ConfigOperation::append ||
         change.operation == ConfigOperation::subtract;
}

ConfigRefusal no_list(const ConfigChange& change) {
  return {
      ErrorCode::invalid_config,
      fmt::format("{} is no list, so nothing can be appended to it or taken from it", change.name)};
}

}  // namespace

Refusal check_changes(const std::vector<ConfigChange>& changes) {
  std::set<std::string_view> names;
  for (const ConfigChange& change : changes) {
    if (!names.insert(change.name).second)
      return refuse_change(ErrorCode::invalid_request,
                           fmt::format("{} stands in the request more than once", change.name));
    if (change.operation < ConfigOperation::set || change.operation > ConfigOperation::subtract)
      return refuse_change(ErrorCode::invalid_request,
                           fmt::format("{}: there is no operation {}", change.name,
                                       static_cast<int>(change.operation)));
    if (!change.value && change.operation != ConfigOperation::remove)
      return refuse_change(
          ErrorCode::invalid_request,
          fmt::format("{} needs a value; delete it to get the default", change.name));
  }
  return std::nullopt;
}

Refusal apply_to_topic(const std::vector<ConfigChange>& changes, const Config& broker,
                       TopicConfigs& configs) {
  TopicConfigs changed = configs;
  for (const ConfigChange& change : changes) {
    const TopicSetting* const setting = find_topic_setting(change.name);
    // Deleting what nobody knows leaves nothing to be wrong.
    const std::string name(setting != nullptr ? setting->name : change.name);
    if (change.operation == ConfigOperation::remove) {
      changed.erase(name);
      continue;
    }
    RequestedConfig wanted{change.name, change.value};
    if (setting != nullptr && is_list_operation(change)) {
      if (setting->type != ConfigType::list) return no_list(change);
      wanted.value = changed_list(change, effective_value(*setting, changed, broker).value);
    }
    CheckedConfigs checked = check_topic_configs({wanted});
    if (checked.problem) return refuse_change(ErrorCode::invalid_config, *checked.problem);
    changed.insert_or_assign(name, checked.configs.at(name));
  }
  if (const auto problem = conflict(changed))
    return refuse_change(ErrorCode::invalid_config, *problem);
  configs = std::move(changed);
  return std::nullopt;
}

Refusal check_group_operations(const std::vector<ConfigChange>& changes) {
  const auto at = std::ranges::find_if(changes, is_list_operation);
  if (at == changes.end()) return std::nullopt;
  return no_list(*at);
}

namespace {

// All of the changes or none. `check(change, value)` says what is wrong, and may put another value.
template <class Check>
Refusal apply_to_values(const std::vector<ConfigChange>& changes, ConfigValues& values,
                        Check check) {
  ConfigValues changed = values;
  for (const ConfigChange& change : changes) {
    if (change.operation == ConfigOperation::remove) {
      changed.erase(change.name);
      continue;
    }
    std::string value = *change.value;
    if (auto refused = check(change, value)) return refused;
    changed.insert_or_assign(change.name, std::move(value));
  }
  values = std::move(changed);
  return std::nullopt;
}

Refusal check_of_group(const ConfigChange& change, const Config& broker, std::string& value) {
  const GroupSetting* const setting = find_group_setting(change.name);
  if (setting == nullptr)
    return refuse_change(ErrorCode::invalid_config,
                         fmt::format("there is no group setting named '{}'", change.name));
  if (const auto problem = group_value_problem(*setting, broker, value))
    return refuse_change(ErrorCode::invalid_config, *problem);
  return std::nullopt;
}

Refusal check_of_broker(const ConfigChange& change, const Config& broker, std::string& value) {
  const Setting* const setting = find_setting(change.name);
  if (setting == nullptr && !is_kafka_setting(change.name))
    return refuse_change(ErrorCode::invalid_config,
                         fmt::format("there is no broker setting named '{}'", change.name));
  if (setting == nullptr)
    return refuse_change(
        ErrorCode::invalid_request,
        fmt::format("{} is a setting of Kafka's that Calque does not serve", change.name));
  if (!setting->dynamic)
    return refuse_change(ErrorCode::invalid_request,
                         fmt::format("{} cannot be changed while the broker runs: set it in "
                                     "server.properties and restart",
                                     change.name));
  if (is_list_operation(change)) {
    if (setting->type != ConfigType::list) return no_list(change);
    value = changed_list(change, broker.text(change.name));
  }
  if (const auto problem = value_problem(*setting, value))
    return refuse_change(ErrorCode::invalid_request, *problem);
  return std::nullopt;
}

}  // namespace

Refusal apply_to_group(const std::vector<ConfigChange>& changes, const Config& broker,
                       ConfigValues& values) {
  return apply_to_values(changes, values, [&](const ConfigChange& change, std::string& value) {
    return check_of_group(change, broker, value);
  });
}

Refusal apply_to_broker(const std::vector<ConfigChange>& changes, const Config& broker,
                        ConfigValues& values) {
  return apply_to_values(changes, values, [&](const ConfigChange& change, std::string& value) {
    return check_of_broker(change, broker, value);
  });
}

}  // namespace broker
