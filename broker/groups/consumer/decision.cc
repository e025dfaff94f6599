#include "broker/groups/consumer/decision.h"

#include <algorithm>

namespace broker::groups::consumer {

std::optional<MigrationPolicy> parse_migration_policy(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "bidirectional") return MigrationPolicy::bidirectional;
  if (lower == "upgrade") return MigrationPolicy::upgrade;
  if (lower == "downgrade") return MigrationPolicy::downgrade;
  if (lower == "disabled") return MigrationPolicy::disabled;
  return std::nullopt;
}

std::string_view name_of(AssignorKind kind) {
  return kind == AssignorKind::range ? "range" : "uniform";
}

}  // namespace broker::groups::consumer
