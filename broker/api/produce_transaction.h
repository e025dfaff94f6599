// What a Produce request with transactional batches needs before these are written: each partition
// must be in the producer's transaction (KIP-890).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/handler.h"
#include "broker/partition.h"
#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/error_code.h"
#include "protocol/messages/produce.gen.h"

namespace broker::api {

// One partition's batch on its way; all of one shard travel together.
struct ProduceItem {
  base::TopicPartition id;
  std::string_view topic;
  base::MutableBytes batch;
  protocol::ProduceResponse::Response::PartitionResponse* answer = nullptr;
  bool durable = false;  // the answer waits for the disk
  // Of transactional batches: why it may not be written; a ticket is to be given back in any case.
  protocol::ErrorCode refused = protocol::ErrorCode::none;
  std::optional<TransactionTicket> ticket = {};
};

// Adds the partitions to the transaction (from Produce v12 on), or looks whether they are in it.
// Batches of a transaction that is open there already need neither.
Task<bool> admit_transaction(Broker& broker, std::string transactional_id, std::int16_t version,
                             std::vector<std::vector<ProduceItem>>& by_shard);

}  // namespace broker::api
