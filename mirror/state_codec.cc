#include "mirror/state_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/messages/last_mirror_epochs.gen.h"
#include "protocol/messages/mirror_partition_state.gen.h"
#include "protocol/record_frame.h"

namespace mirror {
namespace {

using StateKey = protocol::MirrorPartitionStateKey;
using StateValue = protocol::MirrorPartitionStateValue;
using PositionKey = protocol::LastMirrorEpochsKey;
using PositionValue = protocol::LastMirrorEpochsValue;

template <class Key>
base::Buffer key_bytes(const PartitionKey& key) {
  Key out;
  out.mirror_name = key.mirror;
  out.topic_id = key.partition.topic_id;
  out.partition = key.partition.partition;
  return protocol::frame_key(out);
}

template <class Key>
std::optional<PartitionKey> read_key(base::Bytes bytes) {
  Key key;
  if (!protocol::unframe_key(bytes, key)) return std::nullopt;
  return PartitionKey{key.mirror_name, {key.topic_id, key.partition}};
}

std::optional<StoredState> read_state(base::Bytes bytes) {
  StateValue value;
  if (!protocol::unframe_value(bytes, value)) return std::nullopt;
  const auto state = state_from_number(value.state);
  if (!state) return std::nullopt;
  StoredState out;
  out.leader_epoch = value.leader_epoch;
  out.state_epoch = value.state_epoch;
  out.record.state = *state;
  out.record.previous_state =
      state_from_number(value.previous_state).value_or(MirrorState::unknown);
  out.record.retry_attempt = value.retry_attempt;
  out.record.error = value.error_message.value_or("");
  out.record.position.reset();
  if (value.skipped_from >= 0 && value.skipped_to >= value.skipped_from)
    out.record.skipped = SkippedRange{value.skipped_from, value.skipped_to};
  return out;
}

StateRecordChange decode_state_record(base::Bytes key_in, std::optional<base::Bytes> value) {
  const auto key = read_key<StateKey>(key_in);
  if (!key) return Unreadable{};
  if (!value) return StateChange{*key, std::nullopt};
  auto state = read_state(*value);
  if (!state) return Unreadable{};
  return StateChange{*key, std::move(state)};
}

// Epoch -1 with an offset is a position without an epoch; offset -1 is none.
StateRecordChange decode_position(base::Bytes key_in, std::optional<base::Bytes> value) {
  const auto key = read_key<PositionKey>(key_in);
  if (!key) return Unreadable{};
  if (!value) return PositionChange{*key, std::nullopt};
  PositionValue read;
  if (!protocol::unframe_value(*value, read) || read.last_mirror_offset < 0) return Unreadable{};
  Position position{std::nullopt, read.last_mirror_offset};
  if (read.last_mirror_epoch >= 0) position.epoch = read.last_mirror_epoch;
  return PositionChange{*key, position};
}

}  // namespace

std::int32_t state_partition_of(const PartitionKey& key, std::int32_t partition_count) {
  const std::string text = fmt::format("{}:{}:{}", key.mirror, key.partition.topic_id.to_string(),
                                       key.partition.partition);
  std::uint32_t hash = 0;
  for (const char c : text) hash = hash * 31 + static_cast<unsigned char>(c);
  const auto as_signed = static_cast<std::int32_t>(hash);
  const std::int32_t absolute =
      as_signed == INT32_MIN ? 0 : (as_signed < 0 ? -as_signed : as_signed);
  return absolute % partition_count;
}

std::vector<Target::StateRecord> encode_state(const PartitionKey& key, const StoredState& state,
                                              bool had_position) {
  const Record& record = state.record;
  StateValue value;
  value.state = static_cast<std::int8_t>(record.state);
  value.leader_epoch = state.leader_epoch;
  value.state_epoch = state.state_epoch;
  if (!record.error.empty()) value.error_message = record.error;
  value.retry_attempt =
      static_cast<std::int16_t>(std::clamp(record.retry_attempt, -1, std::int32_t{INT16_MAX}));
  value.previous_state = static_cast<std::int8_t>(record.previous_state);
  if (record.skipped) {
    value.skipped_from = record.skipped->from;
    value.skipped_to = record.skipped->to;
  }
  std::vector<Target::StateRecord> out;
  out.push_back({key_bytes<StateKey>(key), protocol::frame_value(value)});
  if (record.position) {
    PositionValue position;
    position.last_mirror_epoch = record.position->epoch.value_or(-1);
    position.last_mirror_offset = record.position->offset;
    out.push_back({key_bytes<PositionKey>(key), protocol::frame_value(position)});
  } else if (had_position) {
    out.push_back({key_bytes<PositionKey>(key), std::nullopt});
  }
  return out;
}

std::vector<Target::StateRecord> encode_forgotten(const PartitionKey& key) {
  std::vector<Target::StateRecord> out;
  out.push_back({key_bytes<StateKey>(key), std::nullopt});
  out.push_back({key_bytes<PositionKey>(key), std::nullopt});
  return out;
}

StateRecordChange decode_state(base::Bytes key, std::optional<base::Bytes> value) {
  const auto type = protocol::framed_type(key);
  if (type == StateKey::record_type) return decode_state_record(key, value);
  if (type == PositionKey::record_type) return decode_position(key, value);
  return Unreadable{.foreign_type = type.has_value()};
}

}  // namespace mirror
