// What can go wrong in the broker itself. error_map.h turns these, and the errors of the layers
// below, into Kafka's numbers.
#pragma once
#include "protocol/base/result.h"

namespace broker {

enum class BrokerErrc {
  unknown_topic = 1,
  unknown_topic_id,
  topic_exists,
  topic_id_in_use,        // another topic has the id
  inconsistent_topic_id,  // the topic has another id
  invalid_topic_name,
  invalid_partition_count,  // below 1, above the limit, or fewer than there are
  not_here,                 // the partition is not (or not yet, or no longer) open on this broker
  not_settled,              // it is not yet known whether the partition takes writes; ask again
  read_only,                // the partition is mirrored
  mirror_not_stopped,       // the topic belongs to a mirror that is not stopped
  unknown_mirror,
  busy,                  // a concurrent change won; look again
  fenced_leader_epoch,   // the client's leader epoch is older than ours
  unknown_leader_epoch,  // ... newer
  not_a_replica,         // a follower asks that this broker does not have
  negative_limit,        // a reader allows less than no bytes
  transaction_unknown,   // a batch of a transaction that the coordinator does not know of
  stopping,              // the broker is going down
};

const boost::system::error_category& broker_category();
inline boost::system::error_code make_error_code(BrokerErrc e) {
  return {static_cast<int>(e), broker_category()};
}

}  // namespace broker

template <>
struct boost::system::is_error_code_enum<broker::BrokerErrc> : std::true_type {};
