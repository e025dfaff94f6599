// What must hold of any log that could be opened.
#pragma once
#include "protocol/base/random.h"
#include "storage/log.h"

namespace storage_fuzz {

// `verified`: every byte was checked when it was opened, so that everything can be read. Returns
// something of all that was read.
std::uint64_t probe(const storage::Log& log, bool verified, base::Random& random);
// Goes on with it, some calls of every kind.
void work_on(storage::Log& log, base::Random& random);

}  // namespace storage_fuzz
