#include "storage/txn_index.h"

#include <algorithm>
#include <array>

#include "protocol/big_endian.h"
#include "storage/error.h"

namespace storage {
namespace {

constexpr std::size_t entry_bytes = 34;
// It is read as a whole. More do not fit into a segment: each has a marker there.
constexpr std::size_t entries_max = std::size_t{1} << 25;

}  // namespace

TxnIndex::TxnIndex(FileSystem& files, std::string path)
    : files_(files), entries_(files, std::move(path), entry_bytes) {}

base::Result<void> TxnIndex::open() {
  TRY(there_, files_.exists(entries_.path()));
  if (!there_) return {};
  TRY_VOID(entries_.open());
  if (entries_.count() > entries_max) return StorageErrc::corrupt_file;
  TRY(auto all, read_all());
  base::Offset before = -1;
  for (const CompletedTransaction& one : all) {
    if (one.marker_offset <= before || one.first_offset > one.marker_offset)
      return StorageErrc::corrupt_file;
    before = one.marker_offset;
  }
  entries_.release();
  return {};
}

base::Result<void> TxnIndex::append(const CompletedTransaction& aborted) {
  if (!there_) {
    TRY_VOID(entries_.create());
    there_ = true;
  }
  std::array<std::byte, entry_bytes> entry;
  protocol::store_be(entry.data(), std::int16_t{0});
  protocol::store_be(entry.data() + 2, aborted.producer_id);
  protocol::store_be(entry.data() + 10, aborted.first_offset);
  protocol::store_be(entry.data() + 18, aborted.marker_offset);
  protocol::store_be(entry.data() + 26, aborted.last_stable_offset);
  entries_.append(entry);
  return entries_.flush();
}

base::Result<std::vector<CompletedTransaction>> TxnIndex::read_all() const {
  std::vector<CompletedTransaction> all;
  base::Buffer bytes(entries_.count() * entry_bytes);
  TRY_VOID(entries_.read(0, bytes));
  for (const std::byte* at = bytes.data(); at != bytes.data() + bytes.size(); at += entry_bytes) {
    if (protocol::load_be<std::int16_t>(at) != 0) return StorageErrc::corrupt_file;
    all.push_back({.producer_id = protocol::load_be<std::int64_t>(at + 2),
                   .first_offset = protocol::load_be<std::int64_t>(at + 10),
                   .marker_offset = protocol::load_be<std::int64_t>(at + 18),
                   .aborted = true,
                   .last_stable_offset = protocol::load_be<std::int64_t>(at + 26)});
  }
  return all;
}

base::Result<void> TxnIndex::truncate_to(base::Offset offset) {
  if (!there_) return {};
  TRY(auto all, read_all());
  auto first_gone = std::find_if(all.begin(), all.end(), [&](const CompletedTransaction& one) {
    return one.marker_offset >= offset;
  });
  return entries_.truncate(static_cast<std::size_t>(first_gone - all.begin()));
}

base::Result<void> TxnIndex::remove() {
  if (!there_) return {};
  TRY_VOID(entries_.truncate(0));
  entries_.release();
  there_ = false;
  return files_.remove(entries_.path());
}

}  // namespace storage
