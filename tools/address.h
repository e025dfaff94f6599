// HOST:PORT as operators write it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Address {
  std::string host;
  std::uint16_t port = 0;
  // IPv6 addresses in brackets.
  std::string to_string() const;
  bool operator==(const Address&) const = default;
};

constexpr std::string_view default_bootstrap = "127.0.0.1:9092";

// A list separated by commas. `option` names the option in the sentence of the Failure(usage).
std::vector<Address> parse_addresses(std::string_view text, std::string_view option);

}  // namespace tools
