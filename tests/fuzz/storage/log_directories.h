// Partition directories as a log leaves them, and their damage.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/random.h"
#include "tests/lib/fault_file.h"

namespace storage_fuzz {

using Files = std::map<std::string, base::Buffer>;  // of one directory, by name

// Closed and killed, trimmed, truncated, compacted, with gaps, old formats, transactions.
std::vector<Files> sound_directories();

Files take(storage_test::FaultFileSystem& files, const std::string& directory);
void put(storage_test::FaultFileSystem& files, const std::string& directory, const Files& content);

// Changes bytes, sizes, names. Now and then what was damaged gets a right checksum again, or the
// damage would seldom come further than to that.
void damage(Files& content, base::Random& random);
void damage_bytes(base::Buffer& bytes, base::Random& random);

// `count` records in one batch; with an uncompressed codec of `random`'s choice.
base::Buffer a_batch(base::Offset base, int count, base::LeaderEpoch epoch, base::Random& random);

}  // namespace storage_fuzz
