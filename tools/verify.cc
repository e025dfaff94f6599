#include "tools/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <ostream>
#include <set>

#include "protocol/crc32c.h"
#include "protocol/wire.h"
#include "tools/bootstrap.h"
#include "tools/json.h"
#include "tools/partition_reader.h"
#include "tools/table.h"

namespace tools {

namespace {

// More epochs than this in one partition are compared in part: the first ones.
constexpr std::size_t epochs_max = 10'000;

std::string describe(const protocol::BatchInfo& info) {
  return fmt::format("offsets {} to {}, {} bytes, leader epoch {}, checksum {:08x}",
                     info.base_offset, info.last_offset, info.size_bytes,
                     info.partition_leader_epoch.value_or(-1), info.crc);
}

class Comparison {
 public:
  Comparison(Cluster& source, Cluster& target, const std::string& topic, std::int32_t partition)
      : source_(source), target_(target) {
    verdict_.topic = topic;
    verdict_.partition = partition;
  }

  PartitionVerdict run() {
    const bool ends_equal = compare_offset("log start", earliest_timestamp, verdict_.start_offset);
    if (!ends_equal) return verdict_;
    std::int64_t target_end = -1;
    if (!compare_offset("log end", latest_timestamp, verdict_.end_offset, &target_end)) {
      // What both have may still be equal, and where it stops being so is worth knowing.
      const auto shared = std::min(verdict_.end_offset, target_end);
      const std::string ends = *std::exchange(verdict_.difference, std::nullopt);
      compare_records(shared);
      if (!verdict_.difference) {
        verdict_.difference = ends;
        verdict_.difference_offset = shared;
      }
      return verdict_;
    }
    compare_records(verdict_.end_offset);
    if (!verdict_.difference) compare_max_timestamp();
    if (!verdict_.difference) compare_epochs();
    return verdict_;
  }

 private:
  bool compare_offset(std::string_view what, std::int64_t timestamp, std::int64_t& source_value,
                      std::int64_t* target_value = nullptr) {
    source_value = source_.offset_at(verdict_.topic, verdict_.partition, timestamp)->offset;
    const auto there = target_.offset_at(verdict_.topic, verdict_.partition, timestamp)->offset;
    if (target_value != nullptr) *target_value = there;
    if (source_value == there) return true;
    verdict_.difference =
        fmt::format("{} is {} at the source and {} in the copy", what, source_value, there);
    return false;
  }

  void compare_records(base::Offset until) {
    PartitionReader from(source_, verdict_.topic, verdict_.partition, verdict_.start_offset, until);
    PartitionReader to(target_, verdict_.topic, verdict_.partition, verdict_.start_offset, until);
    while (true) {
      const bool more_from = from.next(), more_to = to.next();
      if (!more_from && !more_to) return;
      if (more_from != more_to || !protocol::same(from.batch(), to.batch())) {
        const auto side = [](const PartitionReader& reader, bool there) {
          return there ? describe(reader.info()) : std::string("no batch");
        };
        verdict_.difference = fmt::format("batch differs: {} at the source, {} in the copy",
                                          side(from, more_from), side(to, more_to));
        verdict_.difference_offset = more_from ? from.info().base_offset : to.info().base_offset;
        return;
      }
      ++verdict_.batches;
      verdict_.bytes += from.batch().size();
      verdict_.hash = (verdict_.hash ^ protocol::crc32c(from.batch())) * 0x100000001b3u;
      if (from.info().partition_leader_epoch && epochs_.size() < epochs_max)
        epochs_.insert(*from.info().partition_leader_epoch);
    }
  }

  void compare_max_timestamp() {
    const auto from = source_.offset_at(verdict_.topic, verdict_.partition, max_timestamp);
    const auto to = target_.offset_at(verdict_.topic, verdict_.partition, max_timestamp);
    if (!from || !to) return;  // one side is too old to tell
    if (from->offset != to->offset || from->timestamp != to->timestamp)
      verdict_.difference = fmt::format(
          "the largest timestamp is {} at offset {} at the source and {} at offset {} in the copy",
          from->timestamp, from->offset, to->timestamp, to->offset);
  }

  void compare_epochs() {
    for (const base::LeaderEpoch epoch : epochs_) {
      const auto from = source_.epoch_end(verdict_.topic, verdict_.partition, epoch);
      const auto to = target_.epoch_end(verdict_.topic, verdict_.partition, epoch);
      if (from != to) {
        verdict_.difference = fmt::format(
            "leader epoch {} ends at (epoch {}, offset {}) at the source and at (epoch {}, offset "
            "{}) in the copy",
            epoch, from.first, from.second, to.first, to.second);
        return;
      }
      ++verdict_.epochs;
    }
  }

  Cluster& source_;
  Cluster& target_;
  PartitionVerdict verdict_;
  std::set<base::LeaderEpoch> epochs_;
};

// Whole names, as topic patterns of a mirror.
bool matches(const std::vector<std::unique_ptr<RE2>>& patterns, const std::string& name) {
  for (const auto& pattern : patterns)
    if (RE2::FullMatch(name, *pattern)) return true;
  return false;
}

std::vector<std::unique_ptr<RE2>> patterns_of(const std::vector<std::string>& words) {
  std::vector<std::unique_ptr<RE2>> patterns;
  for (const std::string& word : words) {
    patterns.push_back(std::make_unique<RE2>(word, RE2::Quiet));
    if (!patterns.back()->ok())
      throw Failure(ExitCode::usage, fmt::format("--topics: '{}' is no regular expression: {}",
                                                 word, patterns.back()->error()));
  }
  return patterns;
}

PartitionVerdict missing(const std::string& topic, std::int32_t partition) {
  PartitionVerdict verdict;
  verdict.topic = topic;
  verdict.partition = partition;
  verdict.difference = "the copy does not have this partition";
  return verdict;
}

ExitCode verify(const Arguments& arguments, Output& output) {
  const auto patterns = patterns_of(arguments.list("topics"));
  Cluster source(parse_addresses(*arguments.text("source"), "source"), "source");
  const std::string target_text =
      arguments.text("target", arguments.text("bootstrap-server", default_bootstrap));
  Cluster target(parse_addresses(target_text, "target"), "target");
  std::vector<PartitionVerdict> verdicts;
  for (const Cluster::Topic& topic : source.topics()) {
    if (topic.internal || topic.name.starts_with("__") || !matches(patterns, topic.name)) continue;
    const auto copy = target.topic(topic.name);
    for (const Cluster::Partition& partition : topic.partitions) {
      const bool there =
          copy && std::ranges::any_of(copy->partitions, [&](const Cluster::Partition& p) {
            return p.index == partition.index;
          });
      verdicts.push_back(there ? verify_partition(source, target, topic.name, partition.index)
                               : missing(topic.name, partition.index));
    }
  }
  if (verdicts.empty())
    throw Failure(ExitCode::failed, fmt::format("no topic of {} matches {}; 'calque topic list "
                                                "--bootstrap-server {}' shows those that there are",
                                                source.any().address().to_string(),
                                                fmt::join(arguments.list("topics"), ","),
                                                source.any().address().to_string()));
  output.out << (arguments.flag("json") ? verdict_json(verdicts) : verdict_text(verdicts));
  return std::ranges::all_of(verdicts, &PartitionVerdict::identical) ? ExitCode::ok
                                                                     : ExitCode::failed;
}

}  // namespace

PartitionVerdict verify_partition(Cluster& source, Cluster& target, const std::string& topic,
                                  std::int32_t partition) {
  return Comparison(source, target, topic, partition).run();
}

std::string verdict_text(const std::vector<PartitionVerdict>& verdicts) {
  const Table table({{"TOPIC", 40},
                     {"PARTITION", 10},
                     {"START", 12},
                     {"END", 12},
                     {"BATCHES", 10},
                     {"BYTES", 14},
                     {"EPOCHS", 7},
                     {"HASH", 16},
                     {"RESULT", 0}});
  std::string text = table.header();
  std::size_t identical = 0;
  std::uint64_t bytes = 0;
  for (const PartitionVerdict& v : verdicts) {
    const auto offset = [](std::int64_t value) {
      return value < 0 ? std::string() : std::to_string(value);
    };
    text += table.row({v.topic, std::to_string(v.partition), offset(v.start_offset),
                       offset(v.end_offset), std::to_string(v.batches), std::to_string(v.bytes),
                       std::to_string(v.epochs), fmt::format("{:016x}", v.hash),
                       v.identical() ? "identical" : "DIFFERENT: " + *v.difference});
    if (v.identical()) ++identical;
    bytes += v.bytes;
  }
  return text + fmt::format("{} of {} partitions identical, {} compared\n", identical,
                            verdicts.size(), human_bytes(static_cast<double>(bytes)));
}

std::string verdict_json(const std::vector<PartitionVerdict>& verdicts) {
  Json json;
  json.begin_array();
  for (const PartitionVerdict& v : verdicts)
    json.begin_object()
        .field("topic", v.topic)
        .field("partition", v.partition)
        .field("startOffset", v.start_offset)
        .field("endOffset", v.end_offset)
        .field("batches", v.batches)
        .field("bytes", v.bytes)
        .field("epochs", v.epochs)
        .field("hash", fmt::format("{:016x}", v.hash))
        .field("identical", v.identical())
        .field("difference", v.difference)
        .field("differenceOffset", v.difference_offset)
        .end_object();
  return json.end_array().text() + "\n";
}

std::vector<Command> verify_commands() {
  return {{"verify",
           "",
           "Compares a copy with its source: every byte, offset and leader epoch.",
           {{"source", "HOST:PORT[,…]", "Brokers of the source cluster.", true},
            {"target", "HOST:PORT[,…]", "The broker with the copy. Default 127.0.0.1:9092."},
            {"bootstrap-server", "HOST:PORT[,…]", "Another name of --target."},
            {"topics", "REGEX[,…]", "Topics to compare; each must match a whole name.", true, true},
            json_option()},
           "calque verify --source kafka1:9092 --topics 'orders.*'",
           verify}};
}

}  // namespace tools
