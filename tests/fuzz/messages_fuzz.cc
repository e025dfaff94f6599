// Feeds every message decoder with bytes that anybody may send, and holds them to one rule: what is
// taken can be written again and read again as the same.
//
//   messages_fuzz ROUNDS SEED     mutations of Kafka's vectors, the same for the same seed
//   messages_fuzz FILE...         inputs as libFuzzer keeps them, for instance a crash of its
//
// Built with -DLIBFUZZER -fsanitize=fuzzer (target messages_libfuzzer) libFuzzer has the lead.
// An input is: one byte that chooses the message, one for the version, then what is decoded.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/header.h"
#include "tests/golden/message_vectors.h"

namespace {

using message_vectors::Codec;
using message_vectors::Verdict;

// A header that is taken has to be writable too, provided that its API is one of ours.
void try_header(base::Bytes in) {
  protocol::RequestHeader header, again;
  base::Bytes body, body_again;
  if (!decode(in, header, body)) return;
  const protocol::ApiInfo* api = protocol::find_api(header.api_key);
  if (api == nullptr || !api->has(header.api_version)) return;
  base::Buffer out;
  protocol::Writer writer(out);
  encode(writer, header);
  if (!decode(out, again, body_again) || again != header || !body_again.empty()) std::abort();
}

Verdict try_input(base::Bytes in) {
  const auto all = message_vectors::codecs();
  if (in.size() < 2) return Verdict::refused;
  const Codec& codec = all[std::to_integer<std::size_t>(in[0]) % all.size()];
  const int versions = codec.max_version - codec.min_version + 1;
  const auto version =
      static_cast<std::int16_t>(codec.min_version + std::to_integer<int>(in[1]) % versions);
  const base::Bytes message = in.subspan(2);
  try_header(message);
  const Verdict verdict = codec.judge(message, version);
  if (verdict == Verdict::broken) {
    std::fprintf(stderr, "%s v%d is read, but not written as it was read: %s\n",
                 std::string(codec.name).c_str(), version, base::to_hex(message).c_str());
    std::abort();
  }
  return verdict;
}

}  // namespace

#ifdef LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_input({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

#else

namespace {

std::vector<base::Buffer> seeds() {
  std::vector<base::Buffer> made;
  const auto all = message_vectors::codecs();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto add = [&](std::int16_t version, const base::Buffer& bytes) {
      base::Buffer input = {static_cast<std::byte>(i),
                            static_cast<std::byte>(version - all[i].min_version)};
      input.insert(input.end(), bytes.begin(), bytes.end());
      made.push_back(std::move(input));
    };
    for (std::int16_t v = all[i].min_version; v <= all[i].max_version; ++v) {
      add(v, all[i].encode_default(v));
    }
    for (const message_vectors::Vector& v : message_vectors::all().messages) {
      if (v.key == all[i].key && v.type == all[i].type) add(v.version, v.bytes);
    }
  }
  return made;
}

using At = base::Buffer::difference_type;

// Lengths and counts are where decoders go wrong: these come up more often than chance has it.
void write_interesting(base::Buffer& input, std::size_t at, base::Random& random) {
  static const std::vector<base::Buffer> values = [] {
    std::vector<base::Buffer> v;
    for (std::uint32_t n : {0u, 1u, 2u, 127u, 128u, 32767u, 32768u, 0x7fffffffu, 0xffffffffu}) {
      protocol::Writer(v.emplace_back()).uvarint(n);
      protocol::Writer(v.emplace_back()).num(n);
      protocol::Writer(v.emplace_back()).num(static_cast<std::uint16_t>(n));
    }
    return v;
  }();
  for (std::byte b : values[random.below(values.size())]) {
    if (at < input.size()) input[at++] = b;
  }
}

void mutate(base::Buffer& input, const std::vector<base::Buffer>& others, base::Random& random) {
  const std::size_t at = random.below(input.size());
  const auto here = input.begin() + static_cast<At>(at);
  switch (random.below(7)) {
    case 0:
      input[at] = static_cast<std::byte>(random.below(256));
      break;
    case 1:
      input[at] ^= static_cast<std::byte>(1 << random.below(8));
      break;
    case 2:
      write_interesting(input, at, random);
      break;
    case 3:
      input.insert(here, random.below(4) + 1, static_cast<std::byte>(random.below(256)));
      break;
    case 4:
      input.erase(here, here + static_cast<At>(
                                   std::min<std::size_t>(random.below(4) + 1, input.size() - at)));
      break;
    case 5:
      input.resize(at + 1);
      break;
    default: {
      const base::Buffer& other = others[random.below(others.size())];
      const auto from = static_cast<At>(random.below(other.size()));
      const base::Buffer part(other.begin() + from,
                              other.begin() + std::min<At>(from + 64, std::ssize(other)));
      input.insert(here, part.begin(), part.end());
    }
  }
}

int run_files(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "messages_fuzz: cannot read %s\n", argv[i]);
      return 2;
    }
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    try_input(base::as_bytes(input));
  }
  return 0;
}

int run_rounds(std::uint64_t rounds, std::uint64_t seed) {
  const std::vector<base::Buffer> pool = seeds();
  base::Random random(seed);
  std::map<Verdict, std::uint64_t> seen;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    base::Buffer input = pool[random.below(pool.size())];
    for (std::uint64_t edits = 1 + random.below(6); edits > 0; --edits) {
      if (!input.empty()) mutate(input, pool, random);
    }
    ++seen[try_input(input)];
  }
  const std::uint64_t taken = seen[Verdict::same] + seen[Verdict::equivalent];
  std::printf("%zu seeds, %llu inputs: %llu taken, %llu refused\n", pool.size(),
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(taken),
              static_cast<unsigned long long>(seen[Verdict::refused]));
  // A generator whose inputs all end the same way tests nothing.
  return taken > rounds / 100 && seen[Verdict::refused] > rounds / 100 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], &end, 10) : 100'000;
  if (argc > 1 && *end != '\0') return run_files(argc, argv);
  return run_rounds(rounds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}

#endif
