// Our assignors against what Kafka's own made of the same random groups (tests/oracle).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "broker/groups/consumer/assignor.h"
#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;

namespace {

struct VectorCase {
  std::string assignor;
  AssignmentInput input;
  AssignmentResult expected;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list == "-" ? "" : list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

Partitions read_partitions(const std::string& list) {
  Partitions out;
  for (const std::string& word : split(list)) {
    const std::size_t colon = word.find(':');
    out[topic_uuid(std::stoi(word.substr(0, colon)))].insert(std::stoi(word.substr(colon + 1)));
  }
  return out;
}

std::vector<VectorCase> read_vectors() {
  const char* other = std::getenv("ASSIGNOR_VECTORS");
  std::ifstream file(other != nullptr ? other : GOLDEN_ASSIGNOR_VECTORS);
  std::vector<VectorCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    if (kind == "case") {
      std::string wishes;
      VectorCase& one = cases.emplace_back();
      in >> one.assignor >> wishes;
      one.input.homogeneous = wishes == "homogeneous";
    } else if (kind == "topic") {
      int number = 0, partitions = 0;
      in >> number >> partitions;
      cases.back().input.partitions[topic_uuid(number)] = partitions;
    } else {
      AssignmentInput::Member& member = cases.back().input.members.emplace_back();
      std::string instance, topics, previous, expected;
      in >> member.id >> instance >> topics >> previous >> expected;
      if (instance != "-") member.instance_id = instance;
      for (const std::string& topic : split(topics))
        member.topics.insert(topic_uuid(std::stoi(topic)));
      member.previous = read_partitions(previous);
      cases.back().expected.push_back(read_partitions(expected));
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("the results are those of Kafka's assignors") {
  const std::vector<VectorCase> cases = read_vectors();
  REQUIRE(cases.size() >= 400);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i << ": " << cases[i].assignor);
    const auto kind = find_assignor(cases[i].assignor);
    REQUIRE(kind);
    CHECK(assign(*kind, cases[i].input) == cases[i].expected);
  }
}
