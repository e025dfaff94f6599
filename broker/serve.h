// `calque serve`.
#pragma once
#include <string>
#include <vector>

namespace broker {

// Runs the broker until SIGTERM or SIGINT. Returns the exit code: 0 after an orderly stop, 1 when
// it could not start (one sentence on standard error says why). `overrides` are `key=value`.
int serve(const std::string& properties_file, const std::vector<std::string>& overrides);

}  // namespace broker
