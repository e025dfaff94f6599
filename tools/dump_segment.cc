// The batches of a segment and the records in them.
#include <fmt/format.h>

#include <ostream>

#include "protocol/record.h"
#include "tools/dump.h"
#include "tools/failure.h"
#include "tools/mirror_state_text.h"
#include "tools/record_text.h"

namespace tools {

namespace {

std::string control_text(const protocol::ControlRecord& record) {
  const auto with_epoch = [&](const char* word) {
    return record.coordinator_epoch
               ? fmt::format("{} coordinatorEpoch={}", word, *record.coordinator_epoch)
               : std::string(word);
  };
  switch (record.type) {
    case protocol::ControlType::abort:
      return with_epoch("ABORT");
    case protocol::ControlType::commit:
      return with_epoch("COMMIT");
    case protocol::ControlType::leader_change:
      return "LEADER_CHANGE";
    case protocol::ControlType::snapshot_header:
      return "SNAPSHOT_HEADER";
    case protocol::ControlType::snapshot_footer:
      return "SNAPSHOT_FOOTER";
    case protocol::ControlType::kraft_version:
      return "KRAFT_VERSION";
    case protocol::ControlType::kraft_voters:
      return "KRAFT_VOTERS";
    case protocol::ControlType::producer_id_reset:
      return "MIRROR_PID_RESET";
  }
  return fmt::format("type {}", static_cast<int>(record.type));
}

}  // namespace

void Dump::segment() {
  const auto file = open(path_);
  SegmentScan scan(*file);
  base::Buffer bytes;
  base::Offset next_offset = named_offset();
  while (scan.next()) {
    if (scan.info().base_offset < next_offset)
      problem(fmt::format("the batch at position {} begins at offset {}, below {}", scan.position(),
                          scan.info().base_offset, next_offset));
    next_offset = scan.info().next_offset();
    bytes.resize(scan.info().size_bytes);
    if (const auto read = file->pread(bytes, scan.position()); read.has_error()) {
      problem(fmt::format("cannot read {} bytes at position {}: {}", bytes.size(), scan.position(),
                          read.error().message()));
      break;
    }
    batch(bytes, scan.position());
  }
  if (scan.stopped())
    problem(fmt::format("{} bytes from position {} on are no whole batch: {}",
                        scan.file_bytes() - scan.end(), scan.end(), scan.stopped().message()));
  DumpLine line("summary", options_.json);
  line.add("batches", batches_).add("bytes", scan.end());
  if (options_.records) line.add("records", records_);
  print(line.add("endOffset", next_offset).add("problems", problems_));
}

void Dump::batch(base::Bytes bytes, std::uint64_t position) {
  const auto parsed = protocol::parse_batch(bytes);
  if (parsed.has_error())
    return problem(fmt::format("the batch at position {}: {}", position, parsed.error().message()));
  const protocol::BatchInfo& info = *parsed;
  const auto crc = protocol::verify_crc(bytes);
  ++batches_;
  DumpLine line("batch", options_.json);
  line.add("baseOffset", info.base_offset)
      .add("lastOffset", info.last_offset)
      .add("position", position)
      .add("bytes", info.size_bytes)
      .add("leaderEpoch", info.partition_leader_epoch)
      .add("records", info.record_count)
      .add("codec", protocol::name(info.codec()))
      .add("timestampType", info.log_append_time() ? "LogAppendTime" : "CreateTime")
      .add("maxTimestamp", info.max_timestamp)
      .add("producerId", info.producer_id)
      .add("producerEpoch", info.producer_epoch)
      .add("baseSequence", info.base_sequence)
      .add("magic", static_cast<int>(info.magic));
  line.mark("transactional", info.transactional()).mark("control", info.control());
  line.mark("deleteHorizon", info.has_delete_horizon());
  print(line.add("crc", crc.has_error() ? "INVALID" : "valid"));
  if (crc.has_error())
    return problem(fmt::format("the batch at position {}: {}", position, crc.error().message()));
  if (options_.records || info.control()) batch_records(bytes, info.control());
}

void Dump::batch_records(base::Bytes bytes, bool control) {
  auto reader = protocol::RecordReader::open(bytes);
  if (reader.has_error())
    return problem(fmt::format("its records cannot be read: {}", reader.error().message()));
  protocol::Record record;
  while (reader->next(record)) {
    ++records_;
    DumpLine line(options_.json ? "record" : "  record", options_.json);
    line.add("offset", record.offset).add("timestamp", record.timestamp);
    if (control) {
      const auto parsed = protocol::parse_control(record);
      if (parsed.has_error())
        return problem(fmt::format("the control record at offset {}: {}", record.offset,
                                   parsed.error().message()));
      print(line.add("control", control_text(*parsed)));
      continue;
    }
    const auto state = mirror_state_ ? mirror_state_text(record.key, record.value) : std::nullopt;
    if (state) {
      print(line.add("mirrorState", *state));
      continue;
    }
    line.add("key", bytes_text(record.key)).add("value", bytes_text(record.value));
    for (const protocol::RecordHeader& header : record.headers)
      line.add(options_.json ? fmt::format("header.{}", header.key)
                             : fmt::format("header {}", bytes_text(base::as_bytes(header.key))),
               bytes_text(header.value));
    print(line);
  }
  if (reader->error())
    problem(fmt::format("its records cannot be read: {}", reader->error().message()));
}

}  // namespace tools
