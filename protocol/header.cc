#include "protocol/header.h"

#include "protocol/base/check.h"

namespace protocol {
namespace {

bool response_is_flexible(ApiKey key, std::int16_t version) {
  const ApiInfo* api = find_api(key);
  CHECK(api != nullptr);
  return key != ApiKey::api_versions && api->is_flexible(version);
}

}  // namespace

bool decode(base::Bytes in, RequestHeader& out, base::Bytes& body) {
  Reader io(in, false);
  io.num(out.api_key);
  io.num(out.api_version);
  io.num(out.correlation_id);
  io.text(out.client_id, true);
  const ApiInfo* api = find_api(out.api_key);
  io.set_flexible(api != nullptr && api->is_flexible(out.api_version));
  io.tags();
  body = io.remaining();
  return io.ok();
}

void encode(Writer& out, const RequestHeader& m) {
  const ApiInfo* api = find_api(m.api_key);
  CHECK(api != nullptr && api->has(m.api_version));
  out.set_flexible(false);
  out.num(m.api_key);
  out.num(m.api_version);
  out.num(m.correlation_id);
  out.text(m.client_id, true);
  out.set_flexible(api->is_flexible(m.api_version));
  out.tags();
}

bool decode(base::Bytes in, ApiKey key, std::int16_t version, ResponseHeader& out,
            base::Bytes& body) {
  Reader io(in, response_is_flexible(key, version));
  io.num(out.correlation_id);
  io.tags();
  body = io.remaining();
  return io.ok();
}

void encode(Writer& out, ApiKey key, std::int16_t version, const ResponseHeader& m) {
  out.set_flexible(response_is_flexible(key, version));
  out.num(m.correlation_id);
  out.tags();
}

}  // namespace protocol
