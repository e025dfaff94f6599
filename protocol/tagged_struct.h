// A struct that may be null and is a tagged field: Kafka puts a varint before it, 0 for null, where
// elsewhere it puts a byte, -1 for null.
#pragma once
#include <optional>

#include "protocol/wire.h"

namespace protocol {

template <class T, class F>
void tagged_struct(Reader& io, std::optional<T>& v, F body) {
  if (io.uvarint() == 0) {
    v.reset();
  } else {
    body(v.emplace(T{}));
  }
}

template <class T, class F>
void tagged_struct(Writer& io, const std::optional<T>& v, F body) {
  io.uvarint(v ? 1 : 0);
  if (v) body(*v);
}

}  // namespace protocol
