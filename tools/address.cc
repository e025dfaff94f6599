#include "tools/address.h"

#include <fmt/format.h>

#include <charconv>

#include "tools/failure.h"

namespace tools {

namespace {

Address parse_address(std::string_view text, std::string_view option) {
  const auto colon = text.rfind(':');
  Address address;
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    std::uint16_t number = 0;
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    const bool port_ok = error == std::errc() && stop == port.data() + port.size() && number != 0;
    // Without brackets nobody can tell where an IPv6 address ends and the port begins.
    if (port_ok && !host.empty() && (bracketed || host.find(':') == std::string_view::npos))
      address = {std::string(host), number};
  }
  if (address.port == 0)
    throw Failure(ExitCode::usage,
                  fmt::format("--{} needs HOST:PORT (as in 127.0.0.1:9092 or [::1]:9092), not '{}'",
                              option, text));
  return address;
}

}  // namespace

std::string Address::to_string() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::vector<Address> parse_addresses(std::string_view text, std::string_view option) {
  std::vector<Address> result;
  while (true) {
    const auto comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    result.push_back(parse_address(item, option));
    if (comma == std::string_view::npos) return result;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace tools
