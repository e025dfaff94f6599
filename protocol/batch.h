// Views on Kafka's record batches as they lie in files and in Fetch and Produce messages: read the
// header, check the sum, patch in place, walk a span of many. Magic 2 is the batch of today; magic
// 0 and 1 are the message entries that old logs still hold and that are stored and served as they
// are.
//
// Nothing here changes or copies record bytes, and nothing allocates. A header that parses is not a
// promise about the records: offset gaps, fewer records than the offset range, no records at all
// (what compaction leaves), a delete horizon, control batches are all legal in a log. Stricter
// rules for what producers send stand in produce_check.h; records are read by record.h and built by
// batch_builder.h.
#pragma once
#include <boost/system/error_category.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/compress.h"

namespace protocol {

enum class BatchErrc {
  incomplete = 1,  // more bytes are needed; normal at the end of a fetch response
  corrupt_length,  // smaller than the header that the magic asks for
  too_large,       // larger than the caller's limit
  unknown_magic,   // neither 0, 1 nor 2
  bad_crc,         // the bytes are not those that were written
  bad_offset,      // negative, or the last offset does not fit
  bad_count,       // negative record count, or a record count that the records do not bear out
  corrupt_record,  // the record region does not parse
  bad_control,     // a control record whose key or value is too short
};
const boost::system::error_category& batch_category();
inline base::Error make_error_code(BatchErrc e) {
  return {static_cast<int>(e), batch_category()};
}

constexpr std::size_t batch_overhead_bytes =
    12;                                         // offset and length, before what the length counts
constexpr std::size_t batch_header_bytes = 61;  // magic 2, record count included
constexpr std::size_t batch_magic_end = 17;     // so many bytes tell the size and the magic
constexpr std::uint32_t batch_bytes_max = 0x7fffffff;  // what size_bytes can be at most
constexpr std::int64_t no_timestamp = -1;  // the format's word, in batches and in records

enum class TimestampType : std::uint8_t { create_time = 0, log_append_time = 1 };

struct BatchInfo {
  // Of a compressed entry of magic 0 or 1 the header tells the last offset only, and base_offset
  // equals it (see base_offset_known); record.h's first_offset() looks inside.
  base::Offset base_offset = 0;
  base::Offset last_offset = 0;
  std::uint32_t size_bytes = 0;  // of the whole batch, overhead included
  std::uint8_t magic = 0;
  std::int16_t attributes = 0;
  std::uint32_t crc = 0;
  std::optional<base::LeaderEpoch> partition_leader_epoch;  // never for magic 0 and 1
  // The delete horizon where has_delete_horizon(). Record timestamps count from it in either case.
  std::int64_t base_timestamp = no_timestamp;
  std::int64_t max_timestamp = no_timestamp;
  std::optional<base::ProducerId> producer_id;
  std::optional<base::ProducerEpoch> producer_epoch;
  std::optional<std::int32_t> base_sequence;
  // As declared, 0 after compaction removed all. Absent for a compressed entry of magic 0 or 1.
  std::optional<std::int32_t> record_count;

  Codec codec() const { return static_cast<Codec>(attributes & 0x07); }
  bool log_append_time() const { return (attributes & 0x08) != 0; }
  bool transactional() const { return (attributes & 0x10) != 0; }
  bool control() const { return (attributes & 0x20) != 0; }
  bool has_delete_horizon() const { return (attributes & 0x40) != 0; }
  bool base_offset_known() const { return magic >= 2 || codec() == Codec::none; }
  base::Offset next_offset() const { return last_offset + 1; }
  // Sequence of the last record; sequences wrap from 2^31-1 to 0.
  std::optional<std::int32_t> last_sequence() const;
};

// Reads the header at the front of `bytes`; the rest of the batch need not be there. This is for
// scanning files, where the records stay on disk. 61 bytes suffice for every magic.
base::Result<BatchInfo> parse_batch_header(base::Bytes bytes,
                                           std::uint32_t size_max = batch_bytes_max);
// The same, and `incomplete` unless the whole batch is there. The sum is not checked.
base::Result<BatchInfo> parse_batch(base::Bytes bytes, std::uint32_t size_max = batch_bytes_max);

// `batch`: exactly one whole batch that parsed. No value of the checksum is special, not even 0.
base::Result<void> verify_crc(base::Bytes batch);

// Patches of one whole magic-2 batch that parsed. Offset and leader epoch lie outside the checksum;
// the other two compute it anew. Setting the base offset moves the last offset with it.
void set_base_offset(base::MutableBytes batch, base::Offset offset);
void set_partition_leader_epoch(base::MutableBytes batch, std::optional<base::LeaderEpoch> epoch);
// Marks the batch LogAppendTime: every record then counts as written at now_ms.
void set_log_append_time(base::MutableBytes batch, std::int64_t now_ms);
// Marks the batch CreateTime with this largest record timestamp.
void set_max_timestamp(base::MutableBytes batch, std::int64_t timestamp_ms);

enum class CrcCheck { no, yes };

// Walks the whole batches at the front of a span:
//   BatchIterator it(bytes, CrcCheck::yes);
//   while (it.next()) use(it.info(), it.batch());
//   if (it.stopped() && it.stopped() != BatchErrc::incomplete) ... the bytes from valid_bytes() on
//   are bad
class BatchIterator {
 public:
  explicit BatchIterator(base::Bytes bytes, CrcCheck crc = CrcCheck::no,
                         std::uint32_t size_max = batch_bytes_max)
      : bytes_(bytes), crc_(crc), size_max_(size_max) {}

  // False when nothing is left or the next batch is not whole or not valid.
  bool next();
  // Of the batch that the last call of next() returned; not to be used after it returned false.
  const BatchInfo& info() const { return info_; }
  base::Bytes batch() const {
    return bytes_.subspan(valid_bytes_ - info_.size_bytes, info_.size_bytes);
  }
  // Length of the prefix that consists of the batches returned so far.
  std::size_t valid_bytes() const { return valid_bytes_; }
  // Unset while walking and at an exact end; then why the next batch was not returned. `incomplete`
  // is the normal tail of a fetch response.
  base::Error stopped() const { return stopped_; }

 private:
  base::Bytes bytes_;
  CrcCheck crc_;
  std::uint32_t size_max_;
  std::size_t valid_bytes_ = 0;
  BatchInfo info_;
  base::Error stopped_;
};

}  // namespace protocol

template <>
struct boost::system::is_error_code_enum<protocol::BatchErrc> : std::true_type {};
