// How keys and values of Kafka's internal topics are framed: a number of 16 bits, then the message.
// Before a key it is the record's type, before a value the version of the value. A null value
// (a tombstone) has no frame at all.
#pragma once
#include <cstdint>
#include <optional>

#include "protocol/base/bytes.h"
#include "protocol/wire.h"

namespace protocol {

template <class Key>
base::Buffer frame_key(const Key& key) {
  base::Buffer out;
  Writer writer(out);
  writer.num(Key::record_type);
  encode(writer, Key::max_version, key);
  return out;
}

template <class Value>
base::Buffer frame_value(const Value& value, std::int16_t version = Value::max_version) {
  base::Buffer out;
  Writer writer(out);
  writer.num(version);
  encode(writer, version, value);
  return out;
}

// The type of the record that this is the key of; nothing if the key is too short to tell.
inline std::optional<std::int16_t> framed_type(base::Bytes key) {
  Reader reader(key, false);
  std::int16_t type = 0;
  reader.num(type);
  return reader.ok() ? std::optional(type) : std::nullopt;
}

// False: another type, or malformed.
template <class Key>
bool unframe_key(base::Bytes in, Key& out) {
  return framed_type(in) == Key::record_type && decode(in.subspan(2), Key::max_version, out);
}

// False: malformed, or in a version that we do not know.
template <class Value>
bool unframe_value(base::Bytes in, Value& out) {
  const std::optional<std::int16_t> version = framed_type(in);
  return version && decode(in.subspan(2), *version, out);
}

}  // namespace protocol
