// A group as ConsumerGroupDescribe shows it.
#pragma once
#include "broker/groups/consumer/decision.h"
#include "protocol/messages/consumer_group_describe.gen.h"

namespace broker::groups::consumer {

// All but the authorized operations.
protocol::ConsumerGroupDescribeResponse::Group describe(const ConsumerGroup& group,
                                                        const TopicsView& topics,
                                                        const Settings& settings);

}  // namespace broker::groups::consumer
