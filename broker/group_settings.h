// The settings of single groups (resource type GROUP): one table of those that Kafka 4.4 has, what
// may be set, and what it comes to. Those of share and streams groups, which are not here, are kept
// and shown without an effect.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config.h"
#include "broker/groups/consumer/decision.h"
#include "broker/topic_config.h"

namespace broker {

struct GroupSetting {
  // Its least and greatest value hold whatever the broker says.
  Setting setting;
  // The broker's setting that gives the default; the same name where Kafka has none.
  std::string_view broker_name;
  // The broker's settings between which it must lie; empty: there are none here.
  std::string_view least_name = {}, greatest_name = {};
  bool acts = false;
  bool shown_unset = true;  // Kafka shows some only of groups that set them
};

// Sorted by name.
std::span<const GroupSetting> group_settings();
const GroupSetting* find_group_setting(std::string_view name);

// Checks one value; on success `value` is as it is to be kept. Otherwise a sentence for the client.
std::optional<std::string> group_value_problem(const GroupSetting& setting, const Config& broker,
                                               std::string& value);

// `own`: what was set for the group.
EffectiveValue effective_value(const GroupSetting& setting, const ConfigValues& own,
                               const Config& broker);
// By what a group goes that has settings of its own. A value that the broker does not allow any
// more counts as the nearest that it does.
groups::consumer::Settings settings_of_group(const ConfigValues& own, const Config& broker,
                                             groups::consumer::Settings of_broker);

// Tells the operator what of `values` was accepted without an effect.
void log_group_settings_without_effect(std::string_view group, const ConfigValues& values);

}  // namespace broker
