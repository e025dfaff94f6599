#include "tests/unit/records/record_vectors.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "protocol/batch.h"
#include "protocol/compress.h"
#include "protocol/record.h"

namespace record_vectors {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "record vectors: {}\n", why);
  std::exit(2);
}

std::string read_golden() {
  std::string path = std::string(GOLDEN_DIR) + "/records/kafka-4.4.0.txt.gz";
  std::ifstream file(path, std::ios::binary);
  std::string packed{std::istreambuf_iterator<char>(file), {}};
  auto text = protocol::decompress(protocol::Codec::gzip, base::as_bytes(packed), 64 << 20);
  if (!file || text.has_error() || text->empty()) give_up("cannot read " + path);
  return std::string(base::as_text(*text));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

std::optional<protocol::Codec> codec_of(const std::string& name) {
  for (int i = 0; i <= 4; ++i) {
    auto codec = static_cast<protocol::Codec>(i);
    if (protocol::name(codec) == name) return codec;
  }
  return std::nullopt;
}

protocol::ProduceRules rules_of(const std::vector<std::string>& words) {
  protocol::ProduceRules rules;
  rules.compacted = words.at(2) == "1";
  if (words.at(3) == "1") rules.timestamp_type = protocol::TimestampType::log_append_time;
  rules.compression_type = codec_of(words.at(4));
  rules.timestamp_before_max_ms = std::stoll(words.at(5));
  rules.timestamp_after_max_ms = std::stoll(words.at(6));
  rules.now_ms = std::stoll(words.at(7));
  return rules;
}

Vectors parse(const std::string& text) {
  Vectors v;
  std::istringstream in(text);
  bool in_set = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("batch ") || line.starts_with("record ") || line.starts_with("control ")) {
      v.sets.back().content += line + "\n";
      continue;
    }
    std::vector<std::string> words = words_of(line);
    if (words.at(0) == "set") {
      v.sets.push_back({words.at(1), {}, {}});
      in_set = true;
    } else if (words.at(0) == "produce") {
      v.produced.push_back({words.at(1), rules_of(words), {}, 0, {}});
      in_set = false;
    } else if (words.at(0) == "bytes") {
      (in_set ? v.sets.back().bytes : v.produced.back().bytes) = from_hex(words.at(1));
    } else if (words.at(0) == "refused") {
      v.produced.back().error = static_cast<std::int16_t>(std::stoi(words.at(1)));
    } else if (words.at(0) == "accepted") {
      v.produced.back().accepted = from_hex(words.at(1));
    } else {
      give_up("unknown line: " + line);
    }
  }
  return v;
}

std::string word(const std::optional<base::Bytes>& bytes) {
  return bytes ? "x" + base::to_hex(*bytes) : "-";
}

std::string describe_batch(const protocol::BatchInfo& info, base::Bytes batch) {
  base::Offset first = info.base_offset;
  if (info.magic < 2) {
    auto found = protocol::first_offset(batch);
    if (found.has_error()) return "damage " + found.error().message() + "\n";
    first = *found;
  }
  bool counted = info.magic == 2;
  return fmt::format(
      "batch base {} last {} size {} magic {} codec {} append_time {:d} transactional {:d} "
      "control {:d} horizon {:d} epoch {} max_timestamp {} producer {} {} {} {} count {} crc {}\n",
      first, info.last_offset, info.size_bytes, info.magic, protocol::name(info.codec()),
      info.log_append_time(), info.transactional(), info.control(), info.has_delete_horizon(),
      info.partition_leader_epoch.value_or(-1), info.max_timestamp, info.producer_id.value_or(-1),
      info.producer_epoch.value_or(-1), info.base_sequence.value_or(-1),
      info.last_sequence().value_or(-1), counted ? std::to_string(*info.record_count) : "-",
      counted ? std::int64_t{info.crc} : -1);
}

std::string describe_records(base::Bytes batch) {
  auto reader = protocol::RecordReader::open(batch);
  if (reader.has_error()) return "damage " + reader.error().message() + "\n";
  std::string text;
  protocol::Record record;
  while (reader->next(record)) {
    text += fmt::format("record {} {} {} {}", record.offset, record.timestamp, word(record.key),
                        word(record.value));
    for (const protocol::RecordHeader& header : record.headers) {
      text += " " + word(base::as_bytes(header.key)) + " " + word(header.value);
    }
    text += "\n";
    if (!reader->info().control()) continue;
    auto control = protocol::parse_control(record);
    if (control.has_error()) return text + "damage " + control.error().message() + "\n";
    text +=
        fmt::format("control {} {}\n", static_cast<int>(control->type),
                    control->coordinator_epoch ? std::to_string(*control->coordinator_epoch) : "-");
  }
  if (reader->error()) text += "damage " + reader->error().message() + "\n";
  return text;
}

}  // namespace

base::Buffer from_hex(std::string_view hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  base::Buffer out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return out;
}

const Vectors& golden() {
  static const Vectors vectors = parse(read_golden());
  return vectors;
}

std::string describe(base::Bytes bytes) {
  std::string text;
  protocol::BatchIterator it(bytes, protocol::CrcCheck::yes);
  while (it.next()) text += describe_batch(it.info(), it.batch()) + describe_records(it.batch());
  if (it.stopped()) text += "damage " + it.stopped().message() + "\n";
  return text;
}

}  // namespace record_vectors
