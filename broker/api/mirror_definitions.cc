// CreateClusterMirror, DeleteClusterMirror, ListClusterMirrors of KIP-1279, version 0.
#include <fmt/format.h>

#include <array>

#include "broker/api/handlers.h"
#include "broker/api/mirror_answer.h"
#include "broker/broker.h"
#include "broker/shard.h"
#include "protocol/messages/create_cluster_mirror.gen.h"
#include "protocol/messages/delete_cluster_mirror.gen.h"
#include "protocol/messages/list_cluster_mirrors.gen.h"

namespace broker::api {

namespace {

constexpr std::array<std::pair<std::string_view, std::int8_t>, 3> desired_states{{
    {"MIRRORING", desired_mirroring},
    {"PAUSED", desired_paused},
    {"STOPPED", desired_stopped},
}};

std::optional<std::int8_t> desired_state(std::string_view name) {
  for (const auto& [known, number] : desired_states)
    if (known == name) return number;
  return std::nullopt;
}

protocol::ListClusterMirrorsResponse listing(const std::vector<mirror::MirrorListing>& mirrors,
                                             bool with_names) {
  protocol::ListClusterMirrorsResponse response;
  for (const mirror::MirrorListing& mirror : mirrors) {
    protocol::ListClusterMirrorsResponse::Mirror line;
    line.mirror_name = mirror.name;
    line.source_bootstrap = mirror.source_bootstrap;
    line.source_cluster_id = mirror.source_cluster_id;
    line.topic_count = static_cast<std::int32_t>(mirror.topics.size());
    if (with_names) line.topic_names = mirror.topics;
    line.groups_include = mirror.groups_include;
    line.groups_exclude = mirror.groups_exclude;
    response.mirrors.push_back(std::move(line));
  }
  return response;
}

}  // namespace

Task<Response> create_cluster_mirror(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::CreateClusterMirrorRequest>(request);
  if (!message) co_return malformed();
  protocol::CreateClusterMirrorResponse response;
  std::map<std::string, std::string> configs;
  for (const auto& config : message->config) {
    if (!config.value) {
      set_outcome(response,
                  {mirror::control_error::invalid_config,
                   fmt::format("{} needs a value; leave it out to get the default", config.name)});
      co_return respond(request, response);
    }
    configs.insert_or_assign(config.name, *config.value);
  }
  auto run = [name = message->mirror_name, configs](mirror::Coordinator& mirrors) {
    return mirrors.create(name, configs);
  };
  set_outcome(response, co_await with_mirrors(broker, std::move(run)));
  co_return respond(request, response);
}

Task<Response> delete_cluster_mirror(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::DeleteClusterMirrorRequest>(request);
  if (!message) co_return malformed();
  auto run = [name = message->mirror_name](mirror::Coordinator& mirrors) {
    return mirrors.remove(name);
  };
  protocol::DeleteClusterMirrorResponse response;
  set_outcome(response, co_await with_mirrors(broker, std::move(run)));
  co_return respond(request, response);
}

Task<Response> list_cluster_mirrors(Broker& broker, Shard&, Request request) {
  const auto message = decode_request<protocol::ListClusterMirrorsRequest>(request);
  if (!message) co_return malformed();
  mirror::ListFilter filter;
  filter.mirrors = message->mirror_name_filter;
  filter.source_cluster_ids = message->source_cluster_id_filter;
  if (message->state_filter) {
    filter.states.emplace();
    for (const std::string& name : *message->state_filter) {
      const auto state = desired_state(name);
      if (!state) {
        protocol::ListClusterMirrorsResponse refused;
        set_outcome(
            refused,
            {mirror::control_error::invalid_request,
             fmt::format("'{}' is no desired state: use MIRRORING, PAUSED or STOPPED", name)});
        co_return respond(request, refused);
      }
      filter.states->push_back(*state);
    }
  }
  auto run = [filter](mirror::Coordinator& mirrors) { return mirrors.list(filter); };
  const std::vector<mirror::MirrorListing> found = co_await with_mirrors(broker, std::move(run));
  co_return respond(request, listing(found, message->include_topic_names));
}

}  // namespace broker::api
