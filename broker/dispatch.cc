#include "broker/dispatch.h"

#include <algorithm>
#include <array>

#include "broker/api/handlers.h"

namespace broker {
namespace {

using protocol::ApiKey;

// The version ranges are those of the message schemas, which are Kafka 4.4's; protocol/api_table.h
// holds both and what ApiVersions says of them.
constexpr std::array served = {
    Served{ApiKey::produce, api::produce},
    Served{ApiKey::fetch, api::fetch},
    Served{ApiKey::list_offsets, api::list_offsets},
    Served{ApiKey::metadata, api::metadata},
    Served{ApiKey::api_versions, api::api_versions},
    Served{ApiKey::create_topics, api::create_topics},
    Served{ApiKey::delete_topics, api::delete_topics},
    Served{ApiKey::init_producer_id, api::init_producer_id},
    Served{ApiKey::offset_for_leader_epoch, api::offset_for_leader_epoch},
    Served{ApiKey::describe_configs, api::describe_configs},
    Served{ApiKey::create_partitions, api::create_partitions},
    Served{ApiKey::describe_cluster, api::describe_cluster},
    // Listed to our own clients only (docs/decisions.md).
    Served{ApiKey::create_cluster_mirror, api::create_cluster_mirror, false},
    Served{ApiKey::start_mirror_topics, api::start_mirror_topics, false},
    Served{ApiKey::stop_mirror_topics, api::stop_mirror_topics, false},
    Served{ApiKey::list_cluster_mirrors, api::list_cluster_mirrors, false},
    Served{ApiKey::describe_cluster_mirrors, api::describe_cluster_mirrors, false},
    Served{ApiKey::pause_mirror_topics, api::pause_mirror_topics, false},
    Served{ApiKey::resume_mirror_topics, api::resume_mirror_topics, false},
    Served{ApiKey::delete_cluster_mirror, api::delete_cluster_mirror, false},
    Served{ApiKey::recover_mirror_topics, api::recover_mirror_topics, false},
};
static_assert(std::ranges::is_sorted(served, {}, &Served::key));

}  // namespace

std::span<const Served> served_apis() {
  return served;
}

Handler find_handler(std::int16_t key, std::int16_t version) {
  const auto at = std::ranges::lower_bound(served, static_cast<ApiKey>(key), {}, &Served::key);
  if (at == served.end() || at->key != static_cast<ApiKey>(key)) return nullptr;
  if (at->key == ApiKey::api_versions) return at->handle;
  return protocol::find_api(key)->has(version) ? at->handle : nullptr;
}

}  // namespace broker
