#include "storage/log_state.h"

#include <fmt/format.h>

#include "protocol/base/bytes.h"
#include "protocol/crc32c.h"
#include "storage/checkpoint.h"
#include "storage/error.h"
#include "storage/segment.h"

namespace storage {
namespace {

std::string checksum_line(std::string_view text) {
  return fmt::format("checksum {:08x}\n", protocol::crc32c(base::as_bytes(text)));
}

}  // namespace

std::string LogState::to_text() const {
  std::string text = "0\nrecovery_point " + std::to_string(recovery_point) + "\nlog_start " +
                     std::to_string(log_start) + "\n";
  if (truncate_to) text += "truncate_to " + std::to_string(*truncate_to) + "\n";
  if (restart_at) text += "restart_at " + std::to_string(*restart_at) + "\n";
  return text + checksum_line(text);
}

base::Result<LogState> LogState::parse(std::string_view text) {
  LogState state;
  const std::size_t checksum_at = text.rfind("checksum ");
  if (checksum_at == std::string_view::npos ||
      text.substr(checksum_at) != checksum_line(text.substr(0, checksum_at)))
    return StorageErrc::corrupt_file;
  text = text.substr(0, checksum_at);
  bool version = false, recovery = false, start = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return StorageErrc::corrupt_file;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (!version) {
      if (line != "0") return StorageErrc::corrupt_file;
      version = true;
      continue;
    }
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return StorageErrc::corrupt_file;
    TRY(auto offset, parse_number(line.substr(space + 1)));
    if (offset < 0 || offset > log_end_limit) return StorageErrc::corrupt_file;
    const std::string_view key = line.substr(0, space);
    if (key == "recovery_point") {
      state.recovery_point = offset;
      recovery = true;
    } else if (key == "log_start") {
      state.log_start = offset;
      start = true;
    } else if (key == "truncate_to") {
      state.truncate_to = offset;
    } else if (key == "restart_at") {
      state.restart_at = offset;
    } else {
      return StorageErrc::corrupt_file;
    }
  }
  if (!recovery || !start) return StorageErrc::corrupt_file;
  return state;
}

}  // namespace storage
