// DescribeClientQuotas, versions 0 and 1. Each component names a type of entity and which of them
// are meant; strict leaves out entities that have other types besides.
#include <fmt/format.h>

#include <map>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/describe_client_quotas.gen.h"

namespace broker::api {

namespace {

using protocol::DescribeClientQuotasRequest;
using protocol::DescribeClientQuotasResponse;
using protocol::ErrorCode;
using Component = DescribeClientQuotasRequest::Component;

enum class Match : std::int8_t { exact = 0, standard = 1, any = 2 };

struct QuotaRefusal {
  ErrorCode code = ErrorCode::none;
  std::string message;
};

std::optional<QuotaRefusal> check(const Component& component) {
  if (component.entity_type.empty())
    return QuotaRefusal{ErrorCode::invalid_request, "an entity type is empty"};
  const auto match = static_cast<Match>(component.match_type);
  if (match != Match::exact && match != Match::standard && match != Match::any)
    return QuotaRefusal{ErrorCode::invalid_request,
                        fmt::format("there is no match of type {}", component.match_type)};
  if ((match == Match::exact) != component.match.has_value())
    return QuotaRefusal{ErrorCode::invalid_request,
                        "a name belongs to a match of type 0, and to no other"};
  return std::nullopt;
}

std::optional<QuotaRefusal> check(const std::vector<Component>& components) {
  std::map<std::string_view, int> types;
  for (const Component& one : components) {
    if (auto refused = check(one)) return refused;
    if (++types[one.entity_type] > 1)
      return QuotaRefusal{ErrorCode::invalid_request,
                          fmt::format("{} stands there more than once", one.entity_type)};
  }
  for (const auto& [type, times] : types)
    if (type != "user" && type != "client-id" && type != "ip")
      return QuotaRefusal{ErrorCode::unsupported_version,
                          fmt::format("there are no entities of type '{}'", type)};
  if (types.contains("ip") && types.size() > 1)
    return QuotaRefusal{ErrorCode::invalid_request, "ip goes together with no other type"};
  return std::nullopt;
}

bool matches(const storage::QuotaEntity& entity, const std::vector<Component>& components,
             bool strict) {
  for (const Component& one : components) {
    const auto part = entity.find(one.entity_type);
    if (part == entity.end()) return false;
    const auto match = static_cast<Match>(one.match_type);
    if (match == Match::exact && part->second != one.match) return false;
    if (match == Match::standard && part->second) return false;
  }
  return !strict || entity.size() == components.size();
}

}  // namespace

Task<Response> describe_client_quotas(Broker&, Shard& shard, Request request) {
  const auto asked = decode_request<DescribeClientQuotasRequest>(request);
  if (!asked) co_return malformed();
  DescribeClientQuotasResponse message;
  if (const auto refused = check(asked->components)) {
    message.error_code = number(refused->code);
    message.error_message = refused->message;
    message.entries.reset();
    co_return respond(request, message);
  }
  const SnapshotPtr catalog = shard.catalog();
  for (const auto& [entity, values] : catalog->quotas()) {
    // As in Kafka, strict without a component means none at all.
    if (!matches(entity, asked->components, asked->strict)) continue;
    auto& entry = message.entries->emplace_back();
    for (const auto& [type, name] : entity) {
      auto& part = entry.entity.emplace_back();
      part.entity_type = type;
      part.entity_name = name;
    }
    for (const auto& [key, value] : values) {
      auto& one = entry.values.emplace_back();
      one.key = key;
      one.value = value;
    }
  }
  co_return respond(request, message);
}

}  // namespace broker::api
