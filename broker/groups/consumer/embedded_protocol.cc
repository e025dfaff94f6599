#include "broker/groups/consumer/embedded_protocol.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "protocol/wire.h"

namespace broker::groups::consumer {
namespace {

constexpr std::int16_t embedded_version_max = 3;

struct NamedElement {
  std::string topic;
  std::vector<std::int32_t> partitions;
};
constexpr std::size_t named_element_least = 6;  // two lengths

// One layout for both directions, as in generated messages.
template <class Io>
void embedded_partitions(Io& io, std::vector<NamedElement>& elements) {
  io.array(elements, named_element_least, [&io](auto& element) {
    io.text(element.topic);
    io.array(element.partitions, 4, [&io](auto& partition) { io.num(partition); });
  });
}

NamedPartitions to_map(const std::vector<NamedElement>& elements) {
  NamedPartitions out;
  for (const NamedElement& element : elements)
    out[element.topic].insert(element.partitions.begin(), element.partitions.end());
  return out;
}

std::vector<NamedElement> to_elements(const NamedPartitions& partitions) {
  std::vector<NamedElement> out;
  for (const auto& [topic, numbers] : partitions)
    out.push_back({topic, {numbers.begin(), numbers.end()}});
  return out;
}

std::optional<base::Buffer> owned_bytes(const std::optional<base::Bytes>& bytes) {
  return bytes ? std::optional(base::to_buffer(*bytes)) : std::nullopt;
}
std::optional<base::Bytes> borrowed_bytes(const std::optional<base::Buffer>& bytes) {
  return bytes ? std::optional<base::Bytes>(*bytes) : std::nullopt;
}

}  // namespace

std::optional<EmbeddedSubscription> parse_embedded_subscription(base::Bytes bytes) {
  protocol::Reader in(bytes, false);
  EmbeddedSubscription out;
  in.num(out.version);
  in.array(out.topics, 2, [&in](std::string& topic) { in.text(topic); });
  std::optional<base::Bytes> user_data;
  in.blob(user_data, true);
  if (out.version >= 1) {
    std::vector<NamedElement> owned;
    embedded_partitions(in, owned);
    out.owned = to_map(owned);
  }
  if (out.version >= 2) in.num(out.generation);
  if (out.version >= 3) in.text(out.rack, true);
  if (!in.ok() || out.version < 0) return std::nullopt;
  out.user_data = owned_bytes(user_data);
  return out;
}

std::optional<EmbeddedAssignment> parse_embedded_assignment(base::Bytes bytes) {
  protocol::Reader in(bytes, false);
  EmbeddedAssignment out;
  in.num(out.version);
  std::vector<NamedElement> partitions;
  embedded_partitions(in, partitions);
  std::optional<base::Bytes> user_data;
  in.blob(user_data, true);
  if (!in.ok() || out.version < 0) return std::nullopt;
  out.partitions = to_map(partitions);
  out.user_data = owned_bytes(user_data);
  return out;
}

base::Buffer encode_embedded(const EmbeddedSubscription& subscription) {
  base::Buffer bytes;
  protocol::Writer out(bytes);
  const std::int16_t version =
      std::clamp<std::int16_t>(subscription.version, 0, embedded_version_max);
  out.num(version);
  out.array(subscription.topics, 2, [&out](const std::string& topic) { out.text(topic); });
  out.blob(borrowed_bytes(subscription.user_data), true);
  if (version >= 1) {
    std::vector<NamedElement> owned = to_elements(subscription.owned);
    embedded_partitions(out, owned);
  }
  if (version >= 2) out.num(subscription.generation);
  if (version >= 3) out.text(subscription.rack, true);
  return bytes;
}

base::Buffer encode_embedded(const EmbeddedAssignment& assignment) {
  base::Buffer bytes;
  protocol::Writer out(bytes);
  out.num(std::clamp<std::int16_t>(assignment.version, 0, embedded_version_max));
  std::vector<NamedElement> partitions = to_elements(assignment.partitions);
  embedded_partitions(out, partitions);
  out.blob(borrowed_bytes(assignment.user_data), true);
  return bytes;
}

}  // namespace broker::groups::consumer
