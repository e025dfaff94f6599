// How many connections each address has, for max.connections.per.ip and its overrides. Any thread:
// connections end on the shards.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

namespace broker {

// An IPv4 client of a listener for both families is the same client.
boost::asio::ip::address plain(const boost::asio::ip::address& address);

// What max.connections.per.ip.overrides says: ADDRESS:COUNT with commas between. Names of hosts are
// not looked up.
using AddressLimits = std::map<boost::asio::ip::address, std::size_t>;
std::optional<AddressLimits> parse_address_limits(std::string_view text);

class AddressCounts {
 public:
  // False, and not counted, when the address has `most` already.
  bool add(const boost::asio::ip::address& address, std::size_t most) {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.try_emplace(plain(address), 0).first;
    if (at->second >= most) {
      if (at->second == 0) counts_.erase(at);
      return false;
    }
    ++at->second;
    return true;
  }

  void remove(const boost::asio::ip::address& address) {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.find(plain(address));
    if (at != counts_.end() && --at->second == 0) counts_.erase(at);
  }

  std::size_t addresses() const {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<boost::asio::ip::address, std::size_t> counts_;
};

}  // namespace broker
