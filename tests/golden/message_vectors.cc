#include "tests/golden/message_vectors.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "protocol/messages/all.gen.h"

namespace message_vectors {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "message vectors: %s\n", why.c_str());
  std::exit(2);
}

std::string read_unpacked(const char* path) {
  gzFile file = gzopen(path, "rb");
  if (file == nullptr) give_up(std::string("cannot open ") + path);
  std::string text;
  std::array<char, 65536> part;
  int n = 0;
  while ((n = gzread(file, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  if (n < 0 || gzclose(file) != Z_OK) give_up(std::string("damaged: ") + path);
  return text;
}

base::Buffer from_hex(const std::string& hex) {
  base::Buffer bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Vectors parse(const std::string& text) {
  Vectors v;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    if (line.starts_with("error ")) {
      KafkaError e;
      words.ignore(6) >> e.code >> e.name >> std::boolalpha >> e.retriable;
      v.errors.push_back(e);
    } else {
      Vector m;
      std::string hex;
      words >> m.key >> m.type >> m.version >> m.variant;
      const bool has_head = !words.fail();
      words >> hex;  // nothing at all for a message without fields
      m.bytes = from_hex(hex);
      if (!has_head) give_up("not understood: " + line);
      v.messages.push_back(std::move(m));
    }
  }
  return v;
}

template <class M>
base::Buffer encoded(const M& m, std::int16_t version) {
  base::Buffer out;
  protocol::Writer writer(out);
  encode(writer, version, m);
  return out;
}

template <class M>
std::optional<base::Buffer> recode(base::Bytes in, std::int16_t version) {
  M m;
  if (!decode(in, version, m)) return std::nullopt;
  return encoded(m, version);
}

template <class M>
bool accepts(base::Bytes in, std::int16_t version) {
  M m;
  return decode(in, version, m);
}

template <class M>
Verdict judge(base::Bytes in, std::int16_t version) {
  M m, again;
  if (!decode(in, version, m)) return Verdict::refused;
  const base::Buffer out = encoded(m, version);
  if (protocol::same(in, out)) return Verdict::same;
  // What is shorter in its proper form has a smaller budget, and may go over it.
  if (!decode(out, version, again)) {
    return out.size() < in.size() ? Verdict::equivalent : Verdict::broken;
  }
  // A number that is none equals nothing, itself neither; its bytes do.
  const bool alike = again == m || encoded(again, version) == out;
  return alike ? Verdict::equivalent : Verdict::broken;
}

template <class M>
base::Buffer encode_default(std::int16_t version) {
  return encoded(M{}, version);
}

template <class M>
constexpr Codec codec(std::string_view name) {
  std::int16_t key = 0;
  if constexpr (requires { M::api_key; }) {
    key = static_cast<std::int16_t>(M::api_key);
  } else {
    key = M::record_type;
  }
  const std::string_view type = name.ends_with("Request")    ? "request"
                                : name.ends_with("Response") ? "response"
                                : name.ends_with("Key")      ? "key"
                                                             : "value";
  return {name,      key,        type,     M::min_version,   M::max_version,
          recode<M>, accepts<M>, judge<M>, encode_default<M>};
}

#define ONE(M) codec<protocol::M>(#M),
constexpr std::array known = {PROTOCOL_API_MESSAGES(ONE) PROTOCOL_RECORD_MESSAGES(ONE)};
#undef ONE

}  // namespace

std::string Vector::name() const {
  return "API " + std::to_string(key) + " " + type + " v" + std::to_string(version) + " " + variant;
}

const Vectors& all() {
  static const Vectors vectors = parse(read_unpacked(MESSAGE_VECTORS));
  return vectors;
}

std::span<const Codec> codecs() {
  return known;
}

const Codec* find_codec(std::int16_t api_key, std::string_view type) {
  const auto it = std::ranges::find_if(
      known, [&](const Codec& c) { return c.key == api_key && c.type == type; });
  return it != known.end() ? &*it : nullptr;
}

}  // namespace message_vectors
