// Reading at the end of a log, where most readers are.
#include "storage/recent_batches.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::Log;
using storage::RecentBatches;

namespace {

constexpr int records = 3;
constexpr base::Offset batches = 20;

std::unique_ptr<Log> open(FaultFileSystem& files, const std::string& folder) {
  auto log = Log::open(files, folder, {}, {});
  REQUIRE(log);
  return std::move(*log);
}

base::Buffer batch_at(base::Offset number, std::size_t value_bytes = 20) {
  return make_batch({.base = number * records, .count = records, .value_bytes = value_bytes});
}

storage::ReadLimits plenty() {
  storage::ReadLimits limits;
  limits.max_bytes = 1 << 20;
  return limits;
}

}  // namespace

TEST_CASE("what is remembered are the batches appended last") {
  RecentBatches recent;
  CHECK(!recent.find(0));
  std::uint32_t position = 0;
  // With a gap before each.
  for (base::Offset base = 10; base < 300; base += 10) {
    recent.add({base, base + 4, 100, position});
    position += 100;
    CHECK(recent.find(base)->position == position - 100);
    CHECK(recent.find(base + 4)->position == position - 100);
    CHECK(!recent.find(base + 5));
    if (base == 10) {
      CHECK(!recent.find(9));  // who knows what was there before
      continue;
    }
    CHECK(recent.find(base - 1)->base_offset == base);
    CHECK(recent.find(base - 6)->base_offset == base - 10);
  }
  int known = 0;
  for (base::Offset base = 10; base < 300; base += 10) known += recent.find(base).has_value();
  CHECK(known == 8);
  recent.clear();
  CHECK(!recent.find(294));
}

TEST_CASE("whoever reads at the end of a log is answered without a look at the disk") {
  FaultFileSystem files(1);
  auto log = open(files, "/data/t-0");
  for (base::Offset n = 0; n < batches; ++n) REQUIRE(log->append_verbatim(batch_at(n), 0, 0));
  REQUIRE(sync(*log));
  auto reopened = open(files, "/data/t-0");
  int reads = 0;
  files.fault = [&](DiskCall call, const std::string&) {
    reads += call == DiskCall::read;
    return base::Error{};
  };
  for (base::Offset offset = 0; offset < batches * records; ++offset) {
    reads = 0;
    const auto found = log->read(offset, plenty());
    CHECK((reads == 0) == (offset >= (batches - 8) * records));
    const auto looked_up = reopened->read(offset, plenty());
    REQUIRE(found);
    REQUIRE(looked_up);
    CHECK(found->slice.position == looked_up->slice.position);
    CHECK(found->slice.size == looked_up->slice.size);
    CHECK(found->first_base == looked_up->first_base);
    CHECK(found->first_bytes == looked_up->first_bytes);
  }
}

TEST_CASE("what was cut off is not remembered") {
  FaultFileSystem files(1);
  auto log = open(files, "/data/t-0");
  for (base::Offset n = 0; n < batches; ++n) REQUIRE(log->append_verbatim(batch_at(n), 0, 0));
  constexpr base::Offset kept = batches - 5;
  REQUIRE(log->truncate_to(kept * records));
  CHECK(read_all(*log, (kept - 1) * records) == batch_at(kept - 1));
  for (base::Offset n = kept; n < batches; ++n)
    REQUIRE(log->append_verbatim(batch_at(n, 77), 1, 0));
  for (base::Offset n = kept; n < batches; ++n) {
    const auto found = log->read(n * records, plenty());
    REQUIRE(found);
    CHECK(found->first_bytes == batch_at(n, 77).size());
    CHECK(read_slice(found->slice).size() ==
          batch_at(kept, 77).size() * static_cast<std::size_t>(batches - n));
  }
}
