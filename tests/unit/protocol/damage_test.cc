// Damaged and malicious messages: nothing may crash, nothing may cost more than its size allows.
#include <catch2/catch.hpp>
#include <map>

#include "protocol/base/random.h"
#include "protocol/header.h"
#include "protocol/messages/api_versions.gen.h"
#include "protocol/messages/list_groups.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/wire.h"
#include "tests/golden/message_vectors.h"
#include "tests/unit/protocol/allocation_count.h"

using message_vectors::Codec;
using message_vectors::Vector;
using message_vectors::Verdict;
using protocol::Reader;
using protocol::Writer;

namespace {

// Whether the decoder takes the bytes; fails the test when that costs more than it may.
bool accepts(const Codec& codec, base::Bytes in, std::int16_t version) {
  const std::size_t before = allocated_bytes();
  const bool ok = codec.accepts(in, version);
  const std::size_t cost = allocated_bytes() - before;
  if (cost > Reader::memory_factor * in.size() + Reader::memory_allowance) {
    CAPTURE(codec.name, version, in.size(), cost);
    FAIL("a message costs more memory than its size allows");
  }
  return ok;
}

template <class M>
const Codec& codec_of(std::string_view type) {
  return *message_vectors::find_codec(static_cast<std::int16_t>(M::api_key), type);
}

void for_each_message(const auto& body) {
  for (const Vector& v : message_vectors::all().messages) {
    const Codec* codec = message_vectors::find_codec(v.key, v.type);
    if (codec != nullptr) body(*codec, v.version, v.bytes);
  }
  for (const Codec& codec : message_vectors::codecs()) {
    for (std::int16_t v = codec.min_version; v <= codec.max_version; ++v) {
      body(codec, v, codec.encode_default(v));
    }
  }
}

}  // namespace

TEST_CASE("every shorter form of a message is refused") {
  int tried = 0;
  for_each_message([&](const Codec& codec, std::int16_t version, const base::Buffer& whole) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      ++tried;
      if (!accepts(codec, base::Bytes(whole).first(n), version)) continue;
      CAPTURE(codec.name, version, n, base::to_hex(whole));
      FAIL("a part of a message was taken for a message");
    }
  });
  CHECK(tried > 100000);
}

TEST_CASE("a damaged message is refused, or taken and then written without loss") {
  base::Random random(1);
  std::map<Verdict, int> seen;
  for_each_message([&](const Codec& codec, std::int16_t version, const base::Buffer& whole) {
    if (whole.empty()) return;
    for (int i = 0; i < 40; ++i) {
      base::Buffer damaged = whole;
      for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
        damaged[random.below(damaged.size())] = static_cast<std::byte>(random.below(256));
      }
      accepts(codec, damaged, version);
      const Verdict verdict = codec.judge(damaged, version);
      ++seen[verdict];
      if (verdict != Verdict::broken) continue;
      CAPTURE(codec.name, version, base::to_hex(damaged));
      FAIL("what was read is not what was written from it");
    }
  });
  CHECK(seen[Verdict::refused] > 1000);
  CHECK(seen[Verdict::same] > 1000);
  CHECK(seen[Verdict::equivalent] > 10);
}

TEST_CASE("an array cannot claim more elements than its bytes can hold") {
  const Codec& metadata = codec_of<protocol::MetadataRequest>("request");
  base::Buffer plain, compact;
  Writer(plain).num(std::int32_t{0x7fffffff});
  CHECK_FALSE(accepts(metadata, plain, 1));
  plain.resize(100);
  CHECK_FALSE(accepts(metadata, plain, 1));
  Writer(compact).uvarint(0xffffffffu);
  CHECK_FALSE(accepts(metadata, compact, 12));
  compact.resize(1000);
  CHECK_FALSE(accepts(metadata, compact, 12));

  // The same inside of another array: a topic's partitions.
  base::Buffer nested;
  Writer writer(nested);
  writer.num(std::int32_t{-1});  // replica_id
  writer.num(std::int8_t{0});
  writer.num(std::int32_t{1});
  writer.text(std::string("t"));
  writer.num(std::int32_t{0x7fffffff});
  nested.resize(nested.size() + 500);
  const Codec* list_offsets = message_vectors::find_codec(2, "request");
  CHECK_FALSE(accepts(*list_offsets, nested, 2));
}

TEST_CASE("elements that are small on the wire and large in memory stay within the budget") {
  const Codec& groups = codec_of<protocol::ListGroupsRequest>("request");
  auto empty_strings = [](std::uint32_t count) {
    base::Buffer out;
    Writer writer(out);
    writer.set_flexible(true);
    writer.uvarint(count + 1);
    out.resize(out.size() + count, std::byte{1});
    writer.tags();
    return out;
  };
  CHECK(accepts(groups, empty_strings(500), 4));
  // One byte of the wire becomes 32 of memory.
  CHECK_FALSE(accepts(groups, empty_strings(1'000'000), 4));
}

TEST_CASE("what clients send in earnest is within the budget") {
  protocol::MetadataRequest m;
  for (int i = 0; i < 100'000; ++i) {
    m.topics->emplace_back().name = "t" + std::to_string(i % 1000);
  }
  for (int v : {1, 9, 13}) {
    const auto version = static_cast<std::int16_t>(v);
    base::Buffer out;
    Writer writer(out);
    encode(writer, version, m);
    CHECK(accepts(codec_of<protocol::MetadataRequest>("request"), out, version));
  }
}

TEST_CASE("unknown tags are skipped, not kept, and cannot claim more than there is") {
  const Codec& codec = codec_of<protocol::ApiVersionsRequest>("request");
  base::Buffer in;
  Writer writer(in);
  writer.set_flexible(true);
  writer.text(std::string("c"));
  writer.text(std::string("1"));
  const base::Buffer head = in;
  const std::uint32_t count = 1'000'000;
  writer.uvarint(count);
  for (std::uint32_t tag = 0; tag < count; ++tag) {
    writer.uvarint(tag);
    writer.uvarint(1);
    writer.num(std::int8_t{0});
  }
  const std::size_t before = allocated_bytes();
  CHECK(codec.accepts(in, 3));
  CHECK(allocated_bytes() - before < 1000);

  in = head;
  writer.uvarint(0xffffffffu);
  in.resize(20);
  CHECK_FALSE(accepts(codec, in, 3));

  // The same before the body, in the header.
  base::Buffer request;
  Writer header(request);
  encode(header, protocol::RequestHeader{18, 3, 1, std::nullopt});
  request.pop_back();
  header.uvarint(0xffffffffu);
  request.resize(request.size() + 20);
  protocol::RequestHeader found;
  base::Bytes body;
  CHECK_FALSE(decode(request, found, body));
}
