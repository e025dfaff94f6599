// Record batches in the words of tests/oracle/RecordVectors.java, read from tests/golden/records or
// written for it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/produce_check.h"

namespace record_vectors {

struct BatchSet {
  std::string name;
  base::Buffer bytes;
  std::string content;  // its `batch`, `record` and `control` lines
};

struct ProduceCase {
  std::string name;
  protocol::ProduceRules rules;
  base::Buffer bytes;
  std::int16_t error = 0;
  base::Buffer accepted;  // what a leader of epoch 5 appends at offset 100
};

struct Vectors {
  std::vector<BatchSet> sets;
  std::vector<ProduceCase> produced;
};

// The committed vectors; ends the process with a message if they cannot be read.
const Vectors& golden();

base::Buffer from_hex(std::string_view hex);
// What our own code reads from the batches, in the same words. Damage ends the text with a line
// that the oracle never writes.
std::string describe(base::Bytes bytes);

}  // namespace record_vectors
