// The file `log-state` in a partition directory: what Kafka's own files cannot say about a log that
// was truncated, restarted or trimmed. Other programs ignore it. There is none for a log that only
// ever grew.
//
//   0                          version
//   recovery_point 1200        below it every byte is known to be on disk. It lowers the one of the
//                              directory's checkpoint, which may still speak of what was cut off
//   log_start 1000             the log start offset; the directory's checkpoint may be older
//   truncate_to 1200           only while that is under way: it is done again when the log is
//   restart_at 1200            opened, so that a crash in the middle leaves no half-cut log
//   checksum 0a1b2c3d          CRC-32C of the lines above: a flipped digit must not cut a log
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace storage {

constexpr const char* log_state_file = "log-state";

struct LogState {
  base::Offset recovery_point = 0;
  base::Offset log_start = 0;
  std::optional<base::Offset> truncate_to, restart_at;

  std::string to_text() const;
  static base::Result<LogState> parse(std::string_view text);
};

}  // namespace storage
