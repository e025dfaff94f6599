// Records inside one batch of any magic, decompressed under a budget, and what control records say.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/batch.h"

namespace protocol {

struct RecordHeader {
  std::string_view key;
  std::optional<base::Bytes> value;
};

struct Record {
  base::Offset offset = 0;
  std::int64_t timestamp = no_timestamp;  // the batch's largest timestamp if it is LogAppendTime
  std::optional<base::Bytes> key;
  std::optional<base::Bytes> value;
  std::span<const RecordHeader> headers;
};

// Whether record offsets must rise within the range that the header declares, as they do in a log,
// or are taken as they come, which a produced batch that will be rebuilt may need.
enum class OffsetRule { rising, any };

// Reads the records of one batch in order:
//   Record record;
//   while (reader.next(record)) use(record);
//   if (reader.error()) ... damaged; what was read before is not to be trusted either
// Keys, values and headers borrow from the batch or from the reader's decompressed copy; a record's
// headers live only until the next call of next(). A move keeps what was borrowed valid.
class RecordReader {
 public:
  // `batch`: one whole batch that parsed; it must outlive the reader. The checksum is not looked
  // at. Fails if the batch does not decompress within `output_bytes_max` (0: output_budget of its
  // size).
  static base::Result<RecordReader> open(base::Bytes batch, std::size_t output_bytes_max = 0,
                                         OffsetRule rule = OffsetRule::rising);

  RecordReader(RecordReader&&) = default;
  RecordReader& operator=(RecordReader&&) = default;

  // True: `out` is the next record. False: the end, or an error.
  bool next(Record& out);
  base::Error error() const { return error_; }
  const BatchInfo& info() const { return info_; }

 private:
  RecordReader() = default;
  bool next_simple(Record& out);
  bool accept_offset(std::int32_t delta);
  base::Result<void> next_v2(Record& out);
  base::Result<void> next_legacy(Record& out);
  bool at_end() const;

  BatchInfo info_;
  OffsetRule rule_ = OffsetRule::rising;
  base::Buffer decompressed_;
  base::Bytes rest_;  // what is still to be read, in decompressed_ or in the batch
  std::int32_t returned_ = 0;
  std::int32_t last_offset_delta_ = -1;  // of the record before, magic 2
  base::Offset legacy_base_ = 0;         // what inner offsets of magic 1 count from
  std::vector<RecordHeader> headers_;
  base::Error error_;
};

// The offset of the first record that is there, also inside a compressed entry of magic 0 or 1; for
// a batch without records its base offset.
base::Result<base::Offset> first_offset(base::Bytes batch);

// The type in a control record's key. Numbers without a name are kept as they are: readers skip
// them.
enum class ControlType : std::int16_t {
  abort = 0,
  commit = 1,
  leader_change = 2,
  snapshot_header = 3,
  snapshot_footer = 4,
  kraft_version = 5,
  kraft_voters = 6,
  producer_id_reset = 7,
};

struct ControlRecord {
  std::int16_t version = 0;  // of the key
  ControlType type{};
  std::optional<std::int32_t> coordinator_epoch;  // of abort and commit
};

// `record`: the one record of a control batch.
base::Result<ControlRecord> parse_control(const Record& record);
// The control record of `batch`; absent if it is no control batch or compaction emptied it.
base::Result<std::optional<ControlRecord>> read_control(base::Bytes batch);

}  // namespace protocol
