// Kafka's small text files: a version line `0`, a count, then so many lines of fields. Also the
// `key: value` file partition.metadata. Reading is strict: what breaks the format is corrupt_file.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"

namespace storage {

base::Result<std::int64_t> parse_number(std::string_view text);

// The fields of each line after the count.
base::Result<std::vector<std::vector<std::string_view>>> parse_checkpoint_lines(
    std::string_view text);

// `topic partition offset` lines: recovery-point-offset-checkpoint and its sisters.
using OffsetCheckpoint = std::map<std::pair<std::string, std::int32_t>, base::Offset>;
std::string to_text(const OffsetCheckpoint& offsets);
base::Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text);

}  // namespace storage
