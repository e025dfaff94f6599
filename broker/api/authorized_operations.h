// The operations that a client may do, as a set of bits by Kafka's numbers. Nobody is refused
// anything here, so they are all that exist for the kind of resource.
#pragma once
#include <cstdint>

namespace broker::api {

constexpr std::int32_t operation_bit(int number) {
  return 1 << number;
}
// READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
constexpr std::int32_t topic_operations = operation_bit(3) | operation_bit(4) | operation_bit(5) |
                                          operation_bit(6) | operation_bit(7) | operation_bit(8) |
                                          operation_bit(10) | operation_bit(11);
// CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE.
constexpr std::int32_t cluster_operations = operation_bit(5) | operation_bit(7) | operation_bit(8) |
                                            operation_bit(9) | operation_bit(10) |
                                            operation_bit(11) | operation_bit(12);

// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
constexpr std::int32_t group_operations =
    operation_bit(3) | operation_bit(6) | operation_bit(8) | operation_bit(10) | operation_bit(11);

}  // namespace broker::api
