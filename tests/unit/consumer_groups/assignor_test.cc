// The assignors' promises, over random groups. That the results are Kafka's is held against Kafka's
// own classes by tests/oracle/assignor_oracle_test.py.
#include <algorithm>
#include <catch2/catch.hpp>

#include "broker/groups/consumer/assignor.h"
#include "protocol/base/random.h"
#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;

namespace {

AssignmentInput random_input(base::Random& random, bool homogeneous) {
  AssignmentInput input;
  input.homogeneous = homogeneous;
  const auto topics = static_cast<int>(1 + random.below(5));
  for (int t = 1; t <= topics; ++t)
    input.partitions[topic_uuid(t)] = static_cast<std::int32_t>(1 + random.below(12));
  const std::uint64_t members = 1 + random.below(7);
  for (std::uint64_t m = 0; m < members; ++m) {
    AssignmentInput::Member& member = input.members.emplace_back();
    member.id = "m" + std::to_string(m);
    for (int t = 1; t <= topics; ++t) {
      if (homogeneous || random.chance(60)) member.topics.insert(topic_uuid(t));
    }
  }
  for (const auto& [topic, count] : input.partitions) {
    for (std::int32_t p = 0; p < count; ++p) {
      if (random.chance(70)) input.members[random.below(members)].previous[topic].insert(p);
    }
  }
  return input;
}

// Each partition that somebody wants is given to one who wants it.
void check_complete(const AssignmentInput& input, const AssignmentResult& result) {
  std::map<base::TopicPartition, int> given;
  std::set<base::Uuid> wanted;
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const base::Uuid& topic : input.members[i].topics) wanted.insert(topic);
    for (const auto& [topic, partitions] : result[i]) {
      CHECK(input.members[i].topics.contains(topic));
      for (const std::int32_t p : partitions) ++given[{topic, p}];
    }
  }
  std::size_t expected = 0;
  for (const base::Uuid& topic : wanted)
    expected += static_cast<std::size_t>(input.partitions.at(topic));
  CHECK(given.size() == expected);
  CHECK(std::ranges::all_of(given, [](const auto& g) { return g.second == 1; }));
}

std::size_t kept(const AssignmentInput& input, const AssignmentResult& result) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const auto& [topic, partitions] : input.members[i].previous) {
      const auto now = result[i].find(topic);
      if (now == result[i].end()) continue;
      n += static_cast<std::size_t>(std::ranges::count_if(
          partitions, [&now](std::int32_t p) { return now->second.contains(p); }));
    }
  }
  return n;
}

}  // namespace

TEST_CASE("uniform: all that want the same have the same number, and keep what they can") {
  base::Random random(1);
  for (int round = 0; round < 300; ++round) {
    const AssignmentInput input = random_input(random, true);
    const AssignmentResult result = assign_uniform(input);
    check_complete(input, result);
    std::size_t least = SIZE_MAX, most = 0, total = 0;
    for (const Partitions& one : result) {
      least = std::min(least, count_of(one));
      most = std::max(most, count_of(one));
      total += count_of(one);
    }
    CHECK(most - least <= 1);
    // Nobody can keep more than the larger share, and only so many can have that one.
    const std::size_t quota = total / result.size();
    std::size_t extras = total % result.size(), keepable = 0;
    for (const AssignmentInput::Member& member : input.members) {
      const std::size_t had = count_of(member.previous);
      keepable += std::min(had, quota);
      if (had > quota && extras > 0) {
        ++keepable;
        --extras;
      }
    }
    CHECK(kept(input, result) == keepable);
  }
}

TEST_CASE("uniform: what is right stays as it is") {
  base::Random random(2);
  for (int round = 0; round < 200; ++round) {
    AssignmentInput input = random_input(random, random.chance(50));
    const AssignmentResult first = assign_uniform(input);
    for (std::size_t i = 0; i < first.size(); ++i) input.members[i].previous = first[i];
    CHECK(assign_uniform(input) == first);
  }
}

TEST_CASE("uniform: different wishes are met, and nobody could be helped by one move") {
  base::Random random(3);
  for (int round = 0; round < 300; ++round) {
    const AssignmentInput input = random_input(random, false);
    const AssignmentResult result = assign_uniform(input);
    check_complete(input, result);
    for (std::size_t from = 0; from < result.size(); ++from) {
      for (std::size_t to = 0; to < result.size(); ++to) {
        if (count_of(result[from]) <= count_of(result[to]) + 1) continue;
        for (const auto& [topic, partitions] : result[from])
          CHECK_FALSE(input.members[to].topics.contains(topic));
      }
    }
  }
}

TEST_CASE("range: ranges in the order of instance ids, then of members") {
  AssignmentInput input;
  input.partitions = {{topic_uuid(1), 5}, {topic_uuid(2), 2}};
  for (const char* id : {"a", "b", "c"})
    input.members.push_back({id, std::nullopt, {topic_uuid(1), topic_uuid(2)}, {}});
  input.members[2].instance_id = "i";
  const AssignmentResult result = assign_range(input);
  CHECK(result[2] == Partitions{{topic_uuid(1), {0, 1}}, {topic_uuid(2), {0}}});
  CHECK(result[0] == Partitions{{topic_uuid(1), {2, 3}}, {topic_uuid(2), {1}}});
  CHECK(result[1] == Partitions{{topic_uuid(1), {4}}});
  base::Random random(4);
  for (int round = 0; round < 100; ++round) {
    const AssignmentInput other = random_input(random, random.chance(50));
    check_complete(other, assign_range(other));
  }
}

TEST_CASE("groups without members or topics") {
  CHECK(assign_uniform({}).empty());
  CHECK(assign_range({}).empty());
  AssignmentInput input;
  input.members.push_back({"a", std::nullopt, {}, {{topic_uuid(1), {0}}}});
  CHECK(assign_uniform(input) == AssignmentResult{{}});
  input.homogeneous = false;
  CHECK(assign_uniform(input) == AssignmentResult{{}});
  CHECK(assign_range(input) == AssignmentResult{{}});
}
