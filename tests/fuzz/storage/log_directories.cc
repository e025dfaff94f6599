#include "tests/fuzz/storage/log_directories.h"

#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "storage/log.h"

namespace storage_fuzz {
namespace {

using storage::Log;
using storage_test::FaultFileSystem;

constexpr const char* log_place = "/d/t-0";

std::string key_of(base::Random& random) {
  return "key" + std::to_string(random.below(12));
}

// An entry of magic 1, as brokers before 0.11 wrote them.
base::Buffer old_entry(base::Offset offset) {
  const std::string_view value = "from long ago";
  base::Buffer entry(12 + 4 + 1 + 1 + 8 + 4 + 4 + value.size());
  std::byte* at = entry.data();
  protocol::store_be(at, offset);
  protocol::store_be(at + 8, static_cast<std::int32_t>(entry.size() - 12));
  protocol::store_be(at + 16, std::int8_t{1});
  protocol::store_be(at + 17, std::int8_t{0});
  protocol::store_be(at + 18, std::int64_t{1000} + offset);
  protocol::store_be(at + 26, std::int32_t{-1});
  protocol::store_be(at + 30, static_cast<std::int32_t>(value.size()));
  std::copy_n(reinterpret_cast<const std::byte*>(value.data()), value.size(), at + 34);
  protocol::store_be(at + 12, protocol::crc32(base::Bytes(entry).subspan(16)));
  return entry;
}

struct Plan {
  bool old_entries = false, far_gap = false, trimmed = false, truncated = false, compacted = false,
       closed = false, swap = false;
};

void append(Log& log, base::Bytes bytes) {
  CHECK(log.append_verbatim(bytes, 1000, 0).has_value());
}

void sync(Log& log) {
  if (auto job = log.begin_sync()) CHECK(log.finish_sync(*job, job->run()).has_value());
}

Files make(const Plan& plan, std::uint64_t seed) {
  base::Random random(seed);
  FaultFileSystem files(seed);
  storage::LogConfig config;
  config.segment_bytes = 900;
  config.index_interval_bytes = 150;
  Log::OpenOptions options;
  auto opened = Log::open(files, log_place, config, options);
  CHECK(opened.has_value());
  Log& log = **opened;
  if (plan.old_entries)
    for (int i = 0; i < 8; ++i) append(log, old_entry(i));
  base::LeaderEpoch epoch = 1;
  for (int i = 0; i < 40; ++i) {
    if (i % 12 == 11) ++epoch;
    base::Offset at = log.log_end();
    if (random.chance(10)) at += static_cast<base::Offset>(random.below(9));
    if (plan.far_gap && i == 20) at += 3'000'000'000;
    append(log, a_batch(at, 1 + static_cast<int>(random.below(4)), epoch, random));
    if (random.chance(20)) {
      base::Buffer marker = protocol::end_transaction_marker(
          {static_cast<base::ProducerId>(random.below(3)), 0, 0,
           random.chance(50) ? protocol::TransactionResult::abort
                             : protocol::TransactionResult::commit},
          5000);
      protocol::set_base_offset(marker, log.log_end());
      protocol::set_partition_leader_epoch(marker, epoch);
      append(log, marker);
    }
    if (i % 10 == 9) sync(log);
  }
  sync(log);
  if (plan.trimmed) CHECK(log.advance_log_start(log.log_end() / 3).has_value());
  if (plan.truncated) CHECK(log.truncate_to(log.log_end() - 15).has_value());
  if (plan.compacted) CHECK(log.compact({}).has_value());
  if (plan.closed) CHECK(log.close().has_value());
  Files left = take(files, log_place);
  if (plan.swap) {
    const std::string name = "00000000000000000000.log";
    CHECK(left.contains(name));
    left[name + ".swap"] = left[name];
    left[name + ".cleaned"] = left[name];
  }
  return left;
}

void mend(const std::string& name, base::Buffer& bytes, base::Random& random) {
  if (name.ends_with(".log") && bytes.size() >= 61) {
    // One of the batches, as far as they can be walked.
    std::size_t at = 0;
    for (auto n = random.below(6); n > 0; --n) {
      const auto size = protocol::load_be<std::uint32_t>(bytes.data() + at + 8);
      if (size > bytes.size() || at + 12 + size + 61 > bytes.size()) break;
      at += 12 + size;
    }
    const auto size = protocol::load_be<std::uint32_t>(bytes.data() + at + 8);
    if (size < 49 || size > bytes.size() - at - 12 || bytes[at + 16] != std::byte{2}) return;
    protocol::store_be(bytes.data() + at + 17,
                       protocol::crc32c(base::Bytes(bytes).subspan(at + 21, size - 9)));
  } else if (name.ends_with(".snapshot") && bytes.size() >= 10) {
    protocol::store_be(bytes.data(), std::int16_t{1});
    protocol::store_be(bytes.data() + 6, static_cast<std::int32_t>((bytes.size() - 10) / 46));
    protocol::store_be(bytes.data() + 2, protocol::crc32c(base::Bytes(bytes).subspan(6)));
  } else if (name == "log-state") {
    const std::string text(base::as_text(bytes));
    const std::string lines = text.substr(0, text.rfind("checksum "));
    base::Buffer sum(4);
    protocol::store_be(sum.data(), protocol::crc32c(base::as_bytes(lines)));
    bytes = base::to_buffer(base::as_bytes(lines + "checksum " + base::to_hex(sum) + "\n"));
  }
}

}  // namespace

base::Buffer a_batch(base::Offset base, int count, base::LeaderEpoch epoch, base::Random& random) {
  protocol::BatchOptions options;
  options.base_offset = base;
  options.partition_leader_epoch = epoch;
  if (random.chance(20)) options.codec = protocol::Codec::lz4;
  if (random.chance(40)) {
    options.producer_id = static_cast<base::ProducerId>(random.below(3));
    options.producer_epoch = 0;
    options.base_sequence = static_cast<std::int32_t>(random.below(50));
    options.transactional = random.chance(60);
  }
  protocol::BatchBuilder builder(options);
  for (int i = 0; i < count; ++i) {
    const std::string key = key_of(random), value(random.below(60), 'v');
    std::optional<base::Bytes> bytes;
    if (!random.chance(10)) bytes = base::as_bytes(value);
    builder.add(1000 + static_cast<std::int64_t>(random.below(1000)), base::as_bytes(key), bytes);
  }
  return std::move(builder).build();
}

std::vector<Files> sound_directories() {
  return {make({}, 1),
          make({.closed = true}, 2),
          make({.trimmed = true, .closed = true}, 3),
          make({.trimmed = true, .truncated = true}, 4),
          make({.far_gap = true, .closed = true}, 5),
          make({.far_gap = true, .truncated = true}, 6),
          make({.compacted = true}, 7),
          make({.old_entries = true, .closed = true}, 8),
          make({.swap = true}, 9)};
}

Files take(FaultFileSystem& files, const std::string& directory) {
  Files content;
  const auto names = files.list(directory);
  CHECK(names.has_value());
  for (const std::string& name : *names) content[name] = files.content(directory + "/" + name);
  return content;
}

void put(FaultFileSystem& files, const std::string& directory, const Files& content) {
  CHECK(files.create_directory(directory).has_value());
  for (const auto& [name, bytes] : content) {
    auto file = files.open(directory + "/" + name, storage::OpenMode::create);
    CHECK(file.has_value() && (*file)->pwrite(bytes, 0).has_value());
  }
  CHECK(files.sync_directory(directory).has_value());
}

void damage_bytes(base::Buffer& bytes, base::Random& random) {
  static const std::int64_t odd[] = {-1, 0, 1, 2, 61, 0x7fffffff, 0x7fffffffffffffff, -2};
  const std::size_t at = random.below(bytes.size() + 1);
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(9)) {
    case 0:
      if (at < bytes.size()) bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<std::byte>(random.below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.resize(bytes.size() + random.below(200));  // zeros
      break;
    case 4:
      if (bytes.size() - at >= 8) protocol::store_be(bytes.data() + at, odd[random.below(8)]);
      break;
    case 5:
      if (bytes.size() - at >= 4)
        protocol::store_be(bytes.data() + at, static_cast<std::int32_t>(odd[random.below(8)]));
      break;
    case 6:
      for (auto n = random.below(100); n > 0; --n)
        bytes.push_back(static_cast<std::byte>(random.below(256)));
      break;
    case 7: {
      const base::Buffer rest(here, bytes.end());
      bytes.insert(bytes.end(), rest.begin(), rest.end());
      break;
    }
    default:
      bytes.erase(here, here + static_cast<std::ptrdiff_t>(random.below(bytes.size() - at + 1)));
  }
}

void damage(Files& content, base::Random& random) {
  for (auto n = random.below(4) + 1; n > 0 && !content.empty(); --n) {
    auto pick = [&] {
      return std::next(content.begin(), static_cast<std::ptrdiff_t>(random.below(content.size())));
    };
    auto file = pick();
    const auto what = random.below(20);
    if (what == 0) {
      content.erase(file);
    } else if (what == 1) {
      content[pick()->first] = base::Buffer(file->second);
    } else if (what == 2) {  // under another segment's name, or one of no segment
      std::string name = file->first;
      if (name.size() > 20) name[random.below(20)] = static_cast<char>('0' + random.below(10));
      content[name] = base::Buffer(file->second);
    } else {
      damage_bytes(file->second, random);
      if (random.chance(60)) mend(file->first, file->second, random);
    }
  }
}

}  // namespace storage_fuzz
