#include "broker/address_counts.h"

#include <charconv>
#include <string>

#include "broker/config.h"

namespace broker {

namespace ip = boost::asio::ip;

ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

std::optional<AddressLimits> parse_address_limits(std::string_view text) {
  AddressLimits limits;
  for (const std::string& entry : comma_separated(text)) {
    const std::string_view one = entry;
    const std::size_t colon = one.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view host = one.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    boost::system::error_code error;
    const ip::address address = ip::make_address(std::string(host), error);
    std::uint32_t count = 0;
    const char* const end = one.data() + one.size();
    const auto number = std::from_chars(one.data() + colon + 1, end, count);
    if (error || number.ec != std::errc() || number.ptr != end) return std::nullopt;
    limits[plain(address)] = count;
  }
  return limits;
}

}  // namespace broker
