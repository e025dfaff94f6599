// The files beside a segment: `.index`, `.timeindex`, `.txnindex`, `.snapshot`, and the text files
// of the directory.
#include <fmt/format.h>

#include <charconv>
#include <ostream>

#include "protocol/base/ids.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "tools/dump.h"

namespace tools {

using protocol::load_be;

namespace {

// Kafka's limit for segment.index.bytes is an int, and so is every position in it.
constexpr std::uint64_t index_bytes_max = std::uint64_t{1} << 31;
constexpr std::uint64_t text_bytes_max = std::uint64_t{16} << 20;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Takes the next line off the front; lines end in '\n'.
std::optional<std::string_view> take_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

void Dump::offset_index() {
  const base::Buffer content = whole_file(index_bytes_max);
  const std::uint64_t count = entry_count(content, 8);
  const auto log = segment_beside();
  std::optional<SegmentScan> scan;
  if (log) scan.emplace(*log);
  bool in_batch = scan && scan->next();
  std::int64_t last_offset = -1, last_position = -1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t offset = named_offset() + load_be<std::int32_t>(&content[i * 8]);
    const std::int64_t position = load_be<std::int32_t>(&content[i * 8 + 4]);
    print(DumpLine("entry", options_.json).add("offset", offset).add("position", position));
    if (offset <= last_offset || position <= last_position)
      problem(fmt::format("entry {} does not rise above the one before it", i));
    last_offset = offset;
    last_position = position;
    // A search for a later offset starts at this position, so no batch before it may hold one.
    while (in_batch && static_cast<std::int64_t>(scan->position()) < position)
      in_batch = scan->next();
    if (!scan) continue;
    if (!in_batch || static_cast<std::int64_t>(scan->position()) != position) {
      problem(fmt::format("entry {}: no batch begins at position {} of the segment", i, position));
    } else if (scan->info().base_offset > offset) {
      problem(fmt::format("entry {}: the batch at position {} begins at offset {}, above {}", i,
                          position, scan->info().base_offset, offset));
    }
  }
  summary("entries", count);
}

void Dump::time_index() {
  const base::Buffer content = whole_file(index_bytes_max);
  const std::uint64_t count = entry_count(content, 12);
  const auto log = segment_beside();
  std::optional<SegmentScan> scan;
  if (log) scan.emplace(*log);
  bool in_batch = scan && scan->next();
  std::int64_t last_timestamp = -1, last_offset = -1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto timestamp = load_be<std::int64_t>(&content[i * 12]);
    const std::int64_t offset = named_offset() + load_be<std::int32_t>(&content[i * 12 + 8]);
    print(DumpLine("entry", options_.json).add("timestamp", timestamp).add("offset", offset));
    if (timestamp < last_timestamp || offset < last_offset)
      problem(fmt::format("entry {} falls below the one before it", i));
    last_timestamp = timestamp;
    last_offset = offset;
    while (in_batch && scan->info().last_offset < offset) in_batch = scan->next();
    if (!scan) continue;
    if (!in_batch || scan->info().base_offset > offset) {
      // Compaction may have removed the record, never the offset's place in the range.
      problem(fmt::format("entry {}: no batch of the segment holds offset {}", i, offset));
    } else if (scan->info().max_timestamp != timestamp) {
      problem(fmt::format("entry {}: the batch with offset {} has the largest timestamp {}, not {}",
                          i, offset, scan->info().max_timestamp, timestamp));
    }
  }
  summary("entries", count);
}

void Dump::transaction_index() {
  constexpr std::uint64_t entry_bytes = 34;
  const base::Buffer content = whole_file(index_bytes_max);
  if (content.size() % entry_bytes != 0)
    problem(fmt::format("the size {} is no multiple of the {} bytes of an entry", content.size(),
                        entry_bytes));
  std::int64_t last_offset = -1;
  for (std::uint64_t i = 0; (i + 1) * entry_bytes <= content.size(); ++i) {
    const std::byte* const at = &content[i * entry_bytes];
    const auto version = load_be<std::int16_t>(at);
    const auto first = load_be<std::int64_t>(at + 10), last = load_be<std::int64_t>(at + 18);
    const auto stable = load_be<std::int64_t>(at + 26);
    print(DumpLine("aborted", options_.json)
              .add("version", version)
              .add("producerId", load_be<std::int64_t>(at + 2))
              .add("firstOffset", first)
              .add("lastOffset", last)
              .add("lastStableOffset", stable));
    if (version != 0) problem(fmt::format("entry {} has version {}, not 0", i, version));
    if (last < first) problem(fmt::format("entry {} ends before it begins", i));
    if (last <= last_offset)
      problem(fmt::format("entry {} does not rise above the one before it", i));
    last_offset = last;
  }
  summary("entries", content.size() / entry_bytes);
}

void Dump::producer_snapshot() {
  constexpr std::size_t header_bytes = 10, entry_bytes = 46;
  const base::Buffer content = whole_file(std::uint64_t{1} << 30);
  if (content.size() < header_bytes)
    return problem(fmt::format("{} bytes are too few for a snapshot", content.size()));
  const auto version = load_be<std::int16_t>(content.data());
  const auto crc = load_be<std::uint32_t>(&content[2]);
  const auto count = load_be<std::int32_t>(&content[6]);
  const bool crc_valid = crc == protocol::crc32c(base::Bytes(content).subspan(6));
  print(DumpLine("snapshot", options_.json)
            .add("version", version)
            .add("producers", count)
            .add("crc", crc_valid ? "valid" : "INVALID"));
  if (version != 1) return problem(fmt::format("the version is {}, and only 1 is known", version));
  if (!crc_valid) problem("the checksum does not match the content");
  if (count < 0 || content.size() - header_bytes != static_cast<std::size_t>(count) * entry_bytes)
    problem(fmt::format("{} producers do not take {} bytes", count, content.size()));
  for (std::size_t at = header_bytes; at + entry_bytes <= content.size(); at += entry_bytes) {
    const std::byte* const entry = &content[at];
    const auto transaction = load_be<std::int64_t>(entry + 38);
    print(DumpLine("producer", options_.json)
              .add("producerId", load_be<std::int64_t>(entry))
              .add("producerEpoch", load_be<std::int16_t>(entry + 8))
              .add("lastSequence", load_be<std::int32_t>(entry + 10))
              .add("lastOffset", load_be<std::int64_t>(entry + 14))
              .add("offsetDelta", load_be<std::int32_t>(entry + 22))
              .add("timestamp", load_be<std::int64_t>(entry + 26))
              .add("coordinatorEpoch", load_be<std::int32_t>(entry + 34))
              .add("transactionFirstOffset",
                   transaction < 0 ? std::nullopt : std::optional(transaction)));
  }
  summary("producers", static_cast<std::uint64_t>(std::max(count, 0)));
}

void Dump::epoch_checkpoint() {
  const base::Buffer content = whole_file(text_bytes_max);
  std::string_view text = base::as_text(content);
  const auto version = take_line(text), count = take_line(text);
  if (!version || whole_number(*version) != 0)
    return problem("the first line must be the version 0");
  const auto declared = count ? whole_number(*count) : std::nullopt;
  if (!declared) return problem("the second line must be the number of entries");
  std::int64_t last_epoch = -1, last_start = -1, entries = 0;
  while (const auto line = take_line(text)) {
    const auto space = line->find(' ');
    const auto epoch = whole_number(line->substr(0, space));
    const auto start =
        space == std::string_view::npos ? std::nullopt : whole_number(line->substr(space + 1));
    if (!epoch || !start) {
      problem(fmt::format("line {} is not `epoch startOffset`", entries + 3));
      break;
    }
    print(DumpLine("epoch", options_.json).add("leaderEpoch", *epoch).add("startOffset", *start));
    if (*epoch <= last_epoch || *start < last_start)
      problem(fmt::format("line {} does not rise above the one before it", entries + 3));
    last_epoch = *epoch;
    last_start = *start;
    ++entries;
  }
  if (entries != *declared)
    problem(fmt::format("{} entries are declared and {} are there", *declared, entries));
  summary("entries", static_cast<std::uint64_t>(entries));
}

void Dump::partition_metadata() {
  const base::Buffer content = whole_file(text_bytes_max);
  std::string_view text = base::as_text(content);
  const auto version = take_line(text), id = take_line(text);
  constexpr std::string_view id_key = "topic_id: ";
  if (version != "version: 0") return problem("the first line must be 'version: 0'");
  if (!id || !id->starts_with(id_key) || !base::Uuid::parse(id->substr(id_key.size())))
    return problem("the second line must be 'topic_id: ' and 22 characters of base64");
  print(DumpLine("partition", options_.json).add("topicId", id->substr(id_key.size())));
  summary("entries", 1);
}

}  // namespace tools
