// What can go wrong between us and a source, and how the machine is told.
#pragma once
#include <string>

#include "mirror/retry.h"
#include "protocol/base/result.h"
#include "protocol/error_code.h"

namespace mirror {

enum class SourceErrc {
  timed_out = 1,
  closed,             // by us: the mirror stops, or its connections are renewed
  no_broker,          // none of the known brokers could be reached
  no_leader,          // the partition has none at the moment
  unknown_broker,     // the leader is not among the brokers that the source names
  cluster_changed,    // not the cluster that the mirror was made from
  no_cluster_id,      // the source does not say which cluster it is
  malformed,          // a response that does not decode
  wrong_correlation,  // an answer to something else
  too_large,          // a response larger than we take
  unsupported,        // no common version of an API that is needed
};
const boost::system::error_category& source_category();
inline base::Error make_error_code(SourceErrc e) {
  return {static_cast<int>(e), source_category()};
}

// Kafka's error numbers as base::Error, for answers of the source.
const boost::system::error_category& kafka_category();
base::Error kafka_error(std::int16_t number);

// The class of failure. Everything of the network counts as unreachable; so does an answer to
// another request than ours, since nothing was said to ours.
Failure failure_of(const base::Error& error);
// One sentence. `remembered` and `found`: which cluster it should be, and which one answered.
std::string describe_error(const base::Error& error, const std::string& remembered,
                           const std::string& found);

}  // namespace mirror

template <>
struct boost::system::is_error_code_enum<mirror::SourceErrc> : std::true_type {};
