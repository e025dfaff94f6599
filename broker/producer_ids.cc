#include "broker/producer_ids.h"

#include <string_view>
#include <vector>

#include "broker/broker.h"
#include "storage/metadata/records.h"
#include "storage/metadata/store.h"

namespace broker {
namespace {

constexpr base::ProducerId block_size = 1000;
constexpr std::string_view block_key = "producer_ids";

}  // namespace

boost::asio::awaitable<base::Result<base::ProducerId>> ProducerIds::next() {
  auto job = [this]() -> boost::asio::awaitable<base::Result<base::ProducerId>> {
    co_return take();
  };
  co_return co_await on(broker_.shard(0), std::move(job));
}

base::Result<base::ProducerId> ProducerIds::take() {
  if (next_ == end_) {
    storage::MetadataStore& store = broker_.catalog().store();
    storage::ProducerIdBlockRecord block;
    TRY(const auto entry, store.get(block_key));
    if (entry) {
      TRY(block, storage::decode_producer_id_block(entry->value));
    }
    const base::ProducerId first = block.next;
    block.next += block_size;
    const std::vector<storage::Compare> compares = {
        {std::string(block_key), entry ? entry->revision : 0}};
    const std::vector<storage::Write> writes = {{std::string(block_key), storage::encode(block)}};
    TRY_VOID(store.txn(compares, writes));
    next_ = first;
    end_ = block.next;
  }
  return next_++;
}

}  // namespace broker
