// Bytes of records for the eyes of people: text where it is text, else hexadecimal.
#pragma once
#include <optional>
#include <string>

#include "protocol/base/bytes.h"

namespace tools {

// "hello", or hex:00ff when it is no printable UTF-8; null when absent.
std::string bytes_text(std::optional<base::Bytes> bytes);

}  // namespace tools
