// The option that all commands against a broker share.
#pragma once
#include <vector>

#include "tools/address.h"
#include "tools/arguments.h"

namespace tools {

inline Option bootstrap_option() {
  return {"bootstrap-server", "HOST:PORT[,…]", "The broker. Default 127.0.0.1:9092."};
}
inline Option json_option() {
  return {"json", "", "Print one line of JSON."};
}
inline std::vector<Address> bootstrap_of(const Arguments& arguments) {
  return parse_addresses(arguments.text("bootstrap-server", default_bootstrap), "bootstrap-server");
}

}  // namespace tools
