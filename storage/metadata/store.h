// The metadata store: small, transactional, watched; etcd's shape. Keys are paths such as
// `topics/<id>`, values are protobuf messages (metadata.proto) that only storage/metadata/ knows.
// Calls block (a synchronous write is some 150 µs); they come from shard 0 only.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"

namespace storage {

struct Entry {
  std::string key, value;
  std::uint64_t revision = 0;  // of the transaction that wrote it
};

struct Compare {
  std::string key;
  std::uint64_t revision = 0;  // must be the key's revision; 0: the key must be absent
};

struct Write {
  std::string key;
  std::optional<std::string> value;  // absent: delete
};

class MetadataStore {
 public:
  virtual ~MetadataStore() = default;
  virtual base::Result<std::optional<Entry>> get(std::string_view key) = 0;
  virtual base::Result<std::vector<Entry>> range(std::string_view prefix) = 0;
  // All or nothing and durable on return; conflict when a compare does not hold. Returns the new
  // revision.
  virtual base::Result<std::uint64_t> txn(const std::vector<Compare>& compares,
                                          const std::vector<Write>& writes) = 0;
  // `changed` is called, in order and on the caller's thread of txn(), for each write below
  // `prefix` after it is durable. Returns a number for unwatch().
  virtual std::uint64_t watch(
      std::string prefix, std::function<void(const Write&, std::uint64_t revision)> changed) = 0;
  virtual void unwatch(std::uint64_t number) = 0;
  virtual std::uint64_t revision() const = 0;
};

base::Result<std::unique_ptr<MetadataStore>> open_rocksdb_store(const std::string& path);

}  // namespace storage
