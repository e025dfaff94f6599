// What the handlers of the group APIs have in common.
#pragma once
#include <string>

#include "broker/api/handlers.h"
#include "broker/api/locate.h"
#include "broker/group_coordinator.h"
#include "protocol/error_code.h"

namespace broker::api {

// The sender of a request, as it is remembered in its group. The host as Kafka writes it.
inline groups::Caller caller_of(const Request& request) {
  groups::Caller caller;
  caller.version = request.version();
  caller.client_id = request.header.client_id.value_or("");
  const std::string& peer = request.connection.peer;
  caller.client_host = "/" + peer.substr(0, peer.rfind(':'));
  return caller;
}

}  // namespace broker::api
