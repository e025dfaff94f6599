#include "tools/client.h"

#include <fmt/format.h>

#include <array>

#include "protocol/big_endian.h"
#include "protocol/error_code.h"
#include "protocol/header.h"
#include "protocol/messages/api_versions.gen.h"

namespace tools {

namespace {

constexpr std::int16_t unsupported_version = 35;
constexpr std::size_t size_bytes = 4;

std::string_view api_name(protocol::ApiKey key) {
  const protocol::ApiInfo* const info = protocol::find_api(key);
  return info == nullptr ? "unknown" : info->name;
}

}  // namespace

Client::Client(const std::vector<Address>& addresses, std::string option)
    : option_(std::move(option)) {
  connect(addresses);
  ask_versions();
}

void Client::connect(const std::vector<Address>& addresses) {
  std::string tried;
  for (const Address& address : addresses) {
    try {
      address_ = address;
      socket_ = Socket::connect(address, std::chrono::steady_clock::now() + connect_timeout);
      return;
    } catch (const SocketError& error) {
      tried +=
          fmt::format("{}{}: {}", tried.empty() ? "" : ", ", address.to_string(), error.what());
    }
  }
  throw Failure(
      ExitCode::unreachable,
      fmt::format(
          "cannot reach {}; is the broker running? give another address with --{} HOST:PORT", tried,
          option_));
}

void Client::lost(const std::string& reason) const {
  throw Failure(ExitCode::unreachable,
                fmt::format("lost {} in the middle of a request: {}; look whether the broker is "
                            "running, and whether --{} names a Kafka port",
                            address_.to_string(), reason, option_));
}

void Client::undecodable(protocol::ApiKey key, std::int16_t version) const {
  throw Failure(ExitCode::failed,
                fmt::format("the answer of {} to {} version {} is not one of Kafka's protocol; "
                            "look whether --{} names a Kafka port",
                            address_.to_string(), api_name(key), version, option_));
}

void Client::begin(protocol::Writer& writer, protocol::ApiKey key, std::int16_t version) {
  writer.num(std::int32_t{0});  // the size, set in transact()
  protocol::encode(writer, protocol::RequestHeader{.api_key = static_cast<std::int16_t>(key),
                                                   .api_version = version,
                                                   .correlation_id = ++correlation_,
                                                   .client_id = "calque"});
}

base::Bytes Client::transact(base::Buffer& request, protocol::ApiKey key, std::int16_t version) {
  protocol::store_be(request.data(), static_cast<std::int32_t>(request.size() - size_bytes));
  const auto deadline = std::chrono::steady_clock::now() + request_timeout;
  try {
    socket_->send(request, deadline);
    std::array<std::byte, size_bytes> prefix;
    socket_->receive(prefix, deadline);
    const auto size = protocol::load_be<std::uint32_t>(prefix.data());
    if (size > answer_bytes_max) lost(fmt::format("it announced an answer of {} bytes", size));
    answer_.resize(size);
    socket_->receive(answer_, deadline);
  } catch (const SocketError& error) {
    lost(error.what());
  }
  base::Bytes body;
  protocol::ResponseHeader header;
  if (!protocol::decode(answer_, key, version, header, body)) undecodable(key, version);
  if (header.correlation_id != correlation_) lost("the answer belongs to another request");
  return body;
}

void Client::ask_versions() {
  // v3 names the client. A broker that is too old answers in the format of v0 with an error.
  protocol::ApiVersionsRequest request;
  request.client_software_name = "calque";
  request.client_software_version = CALQUE_VERSION;
  protocol::ApiVersionsResponse response;
  for (const std::int16_t version : {std::int16_t{3}, std::int16_t{0}}) {
    base::Buffer body;
    protocol::Writer writer(body);
    begin(writer, protocol::ApiKey::api_versions, version);
    protocol::encode(writer, version, request);
    const base::Bytes answer = transact(body, protocol::ApiKey::api_versions, version);
    const bool refused =
        answer.size() >= 2 && protocol::load_be<std::int16_t>(answer.data()) == unsupported_version;
    if (refused && version > 0) continue;
    if (!protocol::decode(answer, version, response))
      undecodable(protocol::ApiKey::api_versions, version);
    break;
  }
  if (response.error_code != 0)
    throw Failure(ExitCode::failed,
                  fmt::format("{} does not tell its versions: {}; give the address of a Kafka "
                              "broker with --{} HOST:PORT",
                              address_.to_string(), error_text(response.error_code), option_));
  for (const auto& key : response.api_keys)
    versions_[key.api_key] = {key.min_version, key.max_version};
}

bool Client::serves(protocol::ApiKey key, std::int16_t version) const {
  const auto found = versions_.find(static_cast<std::int16_t>(key));
  return found != versions_.end() && found->second.min <= version && version <= found->second.max;
}

std::int16_t Client::negotiate(protocol::ApiKey key, std::int16_t min, std::int16_t max) const {
  const auto found = versions_.find(static_cast<std::int16_t>(key));
  const Range theirs = found == versions_.end() ? Range{} : found->second;
  const std::int16_t best = std::min(max, theirs.max);
  if (best < min || best < theirs.min)
    throw Failure(ExitCode::failed,
                  fmt::format("{} does not serve {} in a version from {} to {}; Kafka 2.1 or newer "
                              "and Calque do: give such a broker with --{} HOST:PORT",
                              address_.to_string(), api_name(key), min, max, option_));
  return best;
}

std::string error_text(std::int16_t code, const std::optional<std::string>& message) {
  if (message && !message->empty()) return *message;
  // From here on the mirror's numbers collide with Kafka's names.
  constexpr std::int16_t first_of_mirrors = 134;
  if (code >= first_of_mirrors) return fmt::format("error {}", code);
  return protocol::describe_error(static_cast<protocol::ErrorCode>(code));
}

}  // namespace tools
