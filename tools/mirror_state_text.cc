#include "tools/mirror_state_text.h"

#include <fmt/format.h>

#include "mirror/states.h"
#include "protocol/messages/last_mirror_epochs.gen.h"
#include "protocol/messages/mirror_partition_state.gen.h"
#include "protocol/record_frame.h"

namespace tools {

namespace {

std::string state_text(std::int8_t number) {
  const auto state = mirror::state_from_number(number);
  return state ? std::string(mirror::name(*state)) : std::to_string(number);
}

template <class Key>
std::string key_text(const Key& key) {
  return fmt::format("mirror={} topicId={} partition={}", key.mirror_name, key.topic_id.to_string(),
                     key.partition);
}

std::string value_text(const protocol::MirrorPartitionStateValue& v) {
  std::string text = fmt::format(
      "state={} leaderEpoch={} stateEpoch={} retryAttempt={} previousState={}", state_text(v.state),
      v.leader_epoch, v.state_epoch, v.retry_attempt, state_text(v.previous_state));
  if (v.error_message) text += fmt::format(" error='{}'", *v.error_message);
  return text;
}

std::string value_text(const protocol::LastMirrorEpochsValue& v) {
  return fmt::format("lastMirrorEpoch={} lastMirrorOffset={}", v.last_mirror_epoch,
                     v.last_mirror_offset);
}

template <class Key, class Value>
std::optional<std::string> record_text(std::string_view kind, base::Bytes key,
                                       std::optional<base::Bytes> value) {
  Key key_message;
  if (!protocol::unframe_key(key, key_message)) return std::nullopt;
  const std::string head = fmt::format("{} {}", kind, key_text(key_message));
  if (!value) return head + " deleted";
  Value value_message;
  if (!protocol::unframe_value(*value, value_message)) return std::nullopt;
  return head + " " + value_text(value_message);
}

}  // namespace

std::optional<std::string> mirror_state_text(std::optional<base::Bytes> key,
                                             std::optional<base::Bytes> value) {
  if (!key) return std::nullopt;
  if (auto text =
          record_text<protocol::MirrorPartitionStateKey, protocol::MirrorPartitionStateValue>(
              "mirrorPartitionState", *key, value))
    return text;
  return record_text<protocol::LastMirrorEpochsKey, protocol::LastMirrorEpochsValue>(
      "lastMirrorEpochs", *key, value);
}

}  // namespace tools
