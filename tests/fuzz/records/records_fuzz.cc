// Damaged batches, record regions and compressed streams against every reader of ours. Nothing may
// crash, read outside its bytes (run it with the sanitizers), go on for ever, or grow beyond its
// budget.
//
//   records_fuzz [ROUNDS [SEED]]      the same seed takes the same way
//
// Seeds are the golden batches, so that damage starts from something that is nearly right.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/random.h"
#include "protocol/batch.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/legacy.h"
#include "protocol/produce_check.h"
#include "protocol/record.h"
#include "tests/unit/records/record_vectors.h"

using namespace protocol;

namespace {

constexpr std::size_t budget_bytes = 1 << 20;
constexpr std::size_t seed_bytes_max = 4096;

std::vector<base::Buffer> seeds() {
  std::vector<base::Buffer> all;
  for (const auto& set : record_vectors::golden().sets) {
    if (set.bytes.size() <= seed_bytes_max) all.push_back(set.bytes);
  }
  for (const auto& c : record_vectors::golden().produced) all.push_back(c.bytes);
  CHECK(all.size() > 50);
  return all;
}

void damage(base::Buffer& bytes, base::Random& random) {
  static const std::int32_t odd[] = {-1,   0,     1,          2,           13,        49,
                                     0x7f, 0x100, 0x7fffffff, -0x7fffffff, 0x1000000, -2};
  for (std::uint64_t n = random.below(4) + 1; n > 0 && !bytes.empty(); --n) {
    std::size_t at = random.below(bytes.size());
    switch (random.below(7)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random.below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        if (bytes.size() - at >= 4) store_be(bytes.data() + at, odd[random.below(std::size(odd))]);
        break;
      case 4:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 5: {
        base::Buffer copy(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
        bytes.insert(bytes.end(), copy.begin(), copy.end());
        break;
      }
      case 6:  // a run of one byte, which varints and lengths do not expect
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min<std::size_t>(bytes.size() - at, random.below(12)), std::byte{0xff});
        break;
    }
  }
}

// Half of the damaged batches get a right length and checksum, or most damage would end there.
void mend(base::Buffer& bytes) {
  if (bytes.size() < batch_header_bytes || bytes[16] > std::byte{2}) return;
  store_be(bytes.data() + 8, static_cast<std::int32_t>(bytes.size() - batch_overhead_bytes));
  base::Bytes all = bytes;
  if (bytes[16] == std::byte{2}) {
    store_be(bytes.data() + 17, crc32c(all.subspan(21)));
  } else {
    store_be(bytes.data() + 12, crc32(all.subspan(16)));
  }
}

std::uint64_t touch(base::Bytes bytes) {
  std::uint64_t sum = 0;
  for (std::byte b : bytes) sum += std::to_integer<std::uint64_t>(b);
  return sum;
}

// Reads everything, so that a sanitizer sees every byte that a caller would see.
std::uint64_t read_records(base::Bytes batch, OffsetRule rule) {
  auto reader = RecordReader::open(batch, budget_bytes, rule);
  if (reader.has_error()) return 0;
  std::uint64_t sum = 0;
  base::Offset last = -1;
  Record record;
  while (reader->next(record)) {
    if (rule == OffsetRule::rising && reader->info().magic == 2) {
      CHECK(record.offset > last);
      CHECK(record.offset >= reader->info().base_offset);
      CHECK(record.offset <= reader->info().last_offset);
      last = record.offset;
    }
    if (record.key) sum += touch(*record.key);
    if (record.value) sum += touch(*record.value);
    for (const RecordHeader& header : record.headers) {
      sum += touch(base::as_bytes(header.key));
      if (header.value) sum += touch(*header.value);
    }
    auto control = parse_control(record);
    if (control.has_value()) sum += static_cast<std::uint64_t>(control->version);
  }
  return sum;
}

std::uint64_t try_batches(base::Bytes bytes) {
  std::uint64_t sum = 0;
  for (CrcCheck crc : {CrcCheck::no, CrcCheck::yes}) {
    BatchIterator it(bytes, crc);
    std::size_t before = 0;
    while (it.next()) {
      CHECK(it.valid_bytes() > before && it.valid_bytes() <= bytes.size());
      CHECK(it.info().last_offset >= it.info().base_offset);
      before = it.valid_bytes();
      sum += read_records(it.batch(), OffsetRule::rising);
      sum += read_records(it.batch(), OffsetRule::any);
      sum += first_offset(it.batch()).has_value() + read_control(it.batch()).has_value();
    }
    CHECK(it.valid_bytes() == bytes.size() || it.stopped());
  }
  return sum;
}

std::uint64_t try_produce(base::Buffer bytes, base::Random& random) {
  ProduceRules rules;
  rules.compacted = random.chance(50);
  if (random.chance(30)) rules.compression_type = static_cast<Codec>(random.below(5));
  if (random.chance(30)) rules.timestamp_type = TimestampType::log_append_time;
  if (random.chance(30)) rules.timestamp_before_max_ms = static_cast<std::int64_t>(random.below(9));
  if (random.chance(30)) rules.timestamp_after_max_ms = static_cast<std::int64_t>(random.below(9));
  const ProduceShape shape = look_at_produce(bytes, random.chance(50));
  if (shape.error != ProduceError::none) return 0;
  CHECK(shape.size_bytes <= bytes.size());
  const base::MutableBytes batch = base::MutableBytes(bytes).first(shape.size_bytes);
  const ProduceVerdict verdict = check_produce(batch, rules);
  CHECK(verdict.faults.empty() || verdict.error != ProduceError::none);
  if (verdict.error != ProduceError::none) return 0;
  const PreparedBatch prepared = prepare_produce(batch, verdict, rules);
  if (prepared.error != ProduceError::none) return 0;
  // Whatever was accepted must now satisfy a leader without further change.
  const base::Bytes ready = prepared.rebuilt ? base::Bytes(*prepared.rebuilt) : base::Bytes(batch);
  CHECK(verify_crc(ready).has_value());
  auto info = parse_batch(ready);
  CHECK(info.has_value() && info->record_count == info->next_offset());
  return 1;
}

std::uint64_t try_codecs(base::Bytes bytes) {
  std::uint64_t sum = 0;
  for (Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    auto out = decompress(codec, bytes, budget_bytes);
    if (!out.has_value()) continue;
    CHECK(out->size() <= budget_bytes);
    sum += touch(*out);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  base::Random random(seed);
  std::vector<base::Buffer> corpus = seeds();
  std::vector<base::Buffer> streams;
  for (Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    streams.push_back(compress(codec, corpus[0]));
    streams.push_back(compress(codec, base::Buffer(100'000, std::byte{'x'})));
  }
  std::uint64_t sum = 0, accepted = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    base::Buffer bytes = corpus[random.below(corpus.size())];
    if (i >= corpus.size()) damage(bytes, random);
    if (random.chance(50)) mend(bytes);
    sum += try_batches(bytes);
    accepted += try_produce(bytes, random);
    base::Buffer stream = streams[random.below(streams.size())];
    damage(stream, random);
    sum += try_codecs(stream);
  }
  CHECK(accepted > 0);
  fmt::print("records_fuzz: {} rounds from seed {}, {} accepted, digest {}\n", rounds, seed,
             accepted, sum);
}
