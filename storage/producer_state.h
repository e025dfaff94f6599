// What a log knows of its producers: the last batches of each for idempotence, open transactions,
// and the snapshot file that saves reading the whole log at start. Pure; the log feeds it every
// batch in log order, live and at replay alike.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/record.h"

namespace storage {

// A transaction whose marker was just applied.
struct CompletedTransaction {
  base::ProducerId producer_id = 0;
  base::Offset first_offset = 0;
  base::Offset marker_offset = 0;
  bool aborted = false;
  // First offset of the earliest transaction still open, or the one after the marker.
  base::Offset last_stable_offset = 0;
};

class ProducerState {
 public:
  struct Batch {
    std::int32_t base_sequence = 0;
    std::int32_t last_sequence = 0;
    base::Offset last_offset = 0;
    std::int32_t offset_delta = 0;
    std::int64_t timestamp_ms = -1;  // the largest of the batch
    base::Offset first_offset() const { return last_offset - offset_delta; }
  };
  struct Producer {
    std::optional<base::ProducerEpoch> epoch;
    std::array<Batch, 5> batches{};  // oldest first: as many as a producer may have in flight
    std::size_t batch_count = 0;
    std::int64_t last_timestamp_ms = -1;
    // When this process took its last batch, for producers of records with old timestamps. Not in
    // the snapshot, whose format has no place for it.
    std::int64_t last_append_ms = -1;
    std::int32_t coordinator_epoch = -1;
    std::optional<base::Offset> transaction_first_offset;

    const Batch* last() const { return batch_count == 0 ? nullptr : &batches[batch_count - 1]; }
  };

  // The leader's rules for a batch with a producer id. A repeated batch is no error: its entry is
  // returned. Changes nothing.
  base::Result<std::optional<Batch>> check(const protocol::BatchInfo& info) const;
  // The leader's rules for a transaction marker.
  base::Result<void> check_marker(const protocol::BatchInfo& info,
                                  const protocol::ControlRecord& control) const;

  // Takes a batch that is in the log, whatever the rules say. `control`: of a control batch, if it
  // could be read. `now_ms`: absent at replay.
  std::optional<CompletedTransaction> apply(const protocol::BatchInfo& info,
                                            const std::optional<protocol::ControlRecord>& control,
                                            std::optional<std::int64_t> now_ms = std::nullopt);

  // Everything below is decided: neither in an open transaction nor in one whose marker is not
  // below the high watermark. Not above the high watermark, which must not fall between calls.
  base::Offset last_stable_offset(base::Offset high_watermark);
  // The same, of an offset that says nothing about the high watermark.
  base::Offset decided_below(base::Offset offset) const;
  // In the order of their first offsets.
  std::vector<std::pair<base::ProducerId, const Producer*>> open_transactions() const;

  void clear();
  // Forgets producers whose last batch is that old, by its timestamp and by the clock, unless they
  // have a transaction open.
  void expire(std::int64_t now_ms, std::int64_t expiration_ms);
  std::size_t size() const { return producers_.size(); }
  const Producer* find(base::ProducerId id) const;
  const std::unordered_map<base::ProducerId, Producer>& all() const { return producers_; }

  // Kafka's snapshot file, version 1.
  base::Buffer encode_snapshot() const;
  // corrupt_file when it is empty, short, or its checksum is wrong.
  static base::Result<ProducerState> decode_snapshot(base::Bytes content);

 private:
  std::optional<CompletedTransaction> apply_marker(const protocol::BatchInfo& info,
                                                   const protocol::ControlRecord& control);
  void add_batch(Producer& producer, const protocol::BatchInfo& info);

  std::unordered_map<base::ProducerId, Producer> producers_;
  std::map<base::Offset, base::ProducerId> open_;  // by first offset
  struct Undecided {
    base::Offset first = 0, marker = 0;
  };
  // Completed, in the order of their markers; dropped once the high watermark is above the marker.
  std::deque<Undecided> completed_;
};

}  // namespace storage
