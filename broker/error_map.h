// The only place that turns errors into Kafka's numbers.
#pragma once
#include "protocol/base/result.h"
#include "protocol/error_code.h"

namespace broker {

protocol::ErrorCode kafka_error(const base::Error& error);

}  // namespace broker
