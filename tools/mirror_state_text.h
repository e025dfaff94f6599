// Records of the topic __mirror_state in words.
#pragma once
#include <optional>
#include <string>

#include "protocol/base/bytes.h"

namespace tools {

// `mirror=m topicId=… partition=0 state=MIRRORING …`, also for a tombstone. Nothing when the bytes
// are no record that KIP-1279 defines.
std::optional<std::string> mirror_state_text(std::optional<base::Bytes> key,
                                             std::optional<base::Bytes> value);

}  // namespace tools
