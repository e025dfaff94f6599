#include "tools/partition_reader.h"

#include <fmt/format.h>

#include "protocol/error_code.h"
#include "protocol/messages/fetch.gen.h"
#include "tools/interrupt.h"

namespace tools {

namespace {

// Later versions name topics by id alone, which a source before 2.8 does not have.
constexpr std::int16_t fetch_version_max = 12;
constexpr std::int32_t fetch_wait_ms = 500;
constexpr int read_attempts_max = 40;
constexpr int read_pause_ms = 250;

}  // namespace

PartitionReader::PartitionReader(Cluster& cluster, std::string topic, std::int32_t partition,
                                 base::Offset from, base::Offset until)
    : cluster_(cluster),
      topic_(std::move(topic)),
      partition_(partition),
      next_(from),
      until_(until) {}

bool PartitionReader::next() {
  int attempts = 0;
  while (next_ < until_) {
    if (take()) return true;
    if (++attempts > read_attempts_max)
      throw Failure(ExitCode::failed,
                    fmt::format("'{}' partition {} has no record batch at offset {} although it "
                                "ends at {}; look at the log of {}",
                                topic_, partition_, next_, until_,
                                cluster_.leader(topic_, partition_).address().to_string()));
    fetch();
  }
  return false;
}

bool PartitionReader::take() {
  while (true) {
    const base::Bytes rest = base::Bytes(fetched_).subspan(used_);
    const auto info = protocol::parse_batch(rest);
    if (info.has_error()) {
      // The end of an answer may be half a batch.
      if (rest.empty() || info.error() == protocol::BatchErrc::incomplete) return false;
      throw Failure(ExitCode::failed,
                    fmt::format("'{}' partition {}: what stands at offset {} is no record batch "
                                "({}); look at the broker's log",
                                topic_, partition_, next_, info.error().message()));
    }
    batch_ = rest.first(info->size_bytes);
    info_ = *info;
    used_ += info_.size_bytes;
    if (info_.last_offset < next_) continue;  // a broker may begin earlier than asked
    if (info_.base_offset >= until_) {
      next_ = until_;
      return false;
    }
    next_ = info_.next_offset();
    return true;
  }
}

void PartitionReader::fetch() {
  try {
    fetch_once();
  } catch (const Failure& failure) {
    if (failure.code() != ExitCode::unreachable) throw;
    sleep_ms(read_pause_ms);
    check_interrupted();
    cluster_.forget_leaders();
  }
}

void PartitionReader::fetch_once() {
  Client& client = cluster_.leader(topic_, partition_);
  protocol::FetchRequest request;
  request.max_wait_ms = fetch_wait_ms;
  request.min_bytes = 1;
  request.max_bytes = fetch_bytes;
  protocol::FetchRequest::Topic::Partition partition;
  partition.partition = partition_;
  partition.fetch_offset = next_;
  partition.partition_max_bytes = fetch_bytes;
  request.topics.push_back({topic_, {}, {partition}});
  const auto response = client.call<protocol::FetchResponse>(request, fetch_version_max);
  std::int16_t code = response.error_code;
  fetched_.clear();
  used_ = 0;
  for (const auto& topic : response.responses) {
    for (const auto& answer : topic.partitions) {
      if (code == 0) code = answer.error_code;
      fetched_ = base::to_buffer(answer.records.bytes);
    }
  }
  if (code == 0) return;
  if (!protocol::is_retriable(static_cast<protocol::ErrorCode>(code)))
    throw Failure(ExitCode::failed, fmt::format("{} does not give records of '{}' partition {} "
                                                "from offset {}: {}; look at the broker's log",
                                                client.address().to_string(), topic_, partition_,
                                                next_, error_text(code)));
  sleep_ms(read_pause_ms);
  check_interrupted();
  cluster_.forget_leaders();
}

}  // namespace tools
