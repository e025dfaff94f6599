// AlterClientQuotas, versions 0 and 1: the quotas that act here, producer_byte_rate,
// consumer_byte_rate and request_percentage, of users, client ids, both, and the default of each.
// Kafka's other two (connection_creation_rate of addresses, controller_mutation_rate) would not act
// and are refused.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/quotas.h"
#include "protocol/base/log.h"
#include "protocol/messages/alter_client_quotas.gen.h"

namespace broker::api {

namespace {

using protocol::AlterClientQuotasRequest;
using protocol::AlterClientQuotasResponse;
using protocol::ErrorCode;
using Entry = AlterClientQuotasRequest::Entry;
using Problem = std::optional<std::string>;

// Absent: a type stands there twice; the last name counts for the answer.
storage::QuotaEntity entity_of(const Entry& entry) {
  storage::QuotaEntity entity;
  for (const auto& part : entry.entity) entity[part.entity_type] = part.entity_name;
  return entity;
}

Problem entity_problem(const storage::QuotaEntity& entity) {
  if (entity.empty()) return "the entity is empty: name a user, a client id or both";
  for (const auto& [type, name] : entity) {
    if (type == "ip") return "quotas of addresses are not served by this broker";
    if (type != "user" && type != "client-id")
      return fmt::format("there are no entities of type '{}': use user or client-id", type);
    if (name && name->empty()) return fmt::format("an empty {} has no quota", type);
  }
  return std::nullopt;
}

Problem value_problem(const std::string& key, double value) {
  const bool is_rate = key == quota_name(QuotaKind::produce) || key == quota_name(QuotaKind::fetch);
  if (!is_rate && key != quota_name(QuotaKind::request))
    return fmt::format(
        "there is no quota '{}' here: use producer_byte_rate, consumer_byte_rate or "
        "request_percentage",
        key);
  if (!(value > 0) || !std::isfinite(value)) return fmt::format("{} must be above 0", key);
  if (is_rate && value != std::floor(value)) return fmt::format("{} must be a whole number", key);
  if (is_rate && value > static_cast<double>(std::numeric_limits<std::int64_t>::max()))
    return fmt::format("{} is too large", key);
  return std::nullopt;
}

Problem plan(const Entry& entry, const storage::QuotaEntity& entity, Catalog::QuotaChange& change) {
  if (auto problem = entity_problem(entity)) return problem;
  for (const auto& op : entry.ops) {
    if (op.remove) {
      change[op.key] = std::nullopt;
      continue;
    }
    if (auto problem = value_problem(op.key, op.value)) return problem;
    change[op.key] = op.value;
  }
  return std::nullopt;
}

AlterClientQuotasResponse::Entry answer_for(const storage::QuotaEntity& entity) {
  AlterClientQuotasResponse::Entry answer;
  answer.error_message.reset();
  for (const auto& [type, name] : entity) {
    auto& part = answer.entity.emplace_back();
    part.entity_type = type;
    part.entity_name = name;
  }
  return answer;
}

void refuse(AlterClientQuotasResponse::Entry& answer, ErrorCode code, std::string message) {
  answer.error_code = number(code);
  answer.error_message = std::move(message);
}

}  // namespace

Task<Response> alter_client_quotas(Broker& broker, Shard&, Request request) {
  const auto asked = decode_request<AlterClientQuotasRequest>(request);
  if (!asked) co_return malformed();
  std::map<storage::QuotaEntity, int> times;
  for (const Entry& entry : asked->entries) ++times[entity_of(entry)];
  AlterClientQuotasResponse message;
  std::map<storage::QuotaEntity, Catalog::QuotaChange> changes;
  for (const Entry& entry : asked->entries) {
    const storage::QuotaEntity entity = entity_of(entry);
    int& count = times[entity];
    if (count == 0) continue;  // answered
    AlterClientQuotasResponse::Entry& answer = message.entries.emplace_back(answer_for(entity));
    Catalog::QuotaChange change;
    if (std::exchange(count, 0) > 1)
      refuse(answer, ErrorCode::invalid_request, "the entity stands in the request more than once");
    else if (auto problem = plan(entry, entity, change))
      refuse(answer, ErrorCode::invalid_request, std::move(*problem));
    else if (!change.empty())
      changes.emplace(entity, std::move(change));
  }
  if (asked->validate_only || changes.empty()) co_return respond(request, message);
  const auto altered = co_await broker.catalog().alter_quotas(std::move(changes));
  if (altered.has_error())
    for (auto& answer : message.entries)
      if (answer.error_code == 0)
        refuse(answer, kafka_error(altered.error()), altered.error().message());
  co_return respond(request, message);
}

}  // namespace broker::api
