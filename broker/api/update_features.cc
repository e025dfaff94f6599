// UpdateFeatures, versions 0 to 2. The features that ApiVersions tells of never change: each update
// fails, and with it the request, as for a feature that Kafka does not know.
#include <fmt/format.h>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "protocol/messages/update_features.gen.h"

namespace broker::api {

Task<Response> update_features(Broker&, Shard&, Request request) {
  const auto asked = decode_request<protocol::UpdateFeaturesRequest>(request);
  if (!asked) co_return malformed();
  protocol::UpdateFeaturesResponse message;
  message.error_message.reset();
  if (!asked->feature_updates.empty()) {
    const auto& first = asked->feature_updates.front();
    message.error_code = number(protocol::ErrorCode::invalid_update_version);
    message.error_message =
        fmt::format("nothing was updated: this broker does not serve the feature '{}' of level {}",
                    first.feature, first.max_version_level);
  }
  co_return respond(request, message);
}

}  // namespace broker::api
