// Many clients that come, change their minds, die and come back, with answers that get lost and a
// coordinator that is restarted, in seeded random orders. SEEDS=n runs so many, SEED=n only that
// one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "protocol/base/random.h"
#include "tests/lib/seeds.h"
#include "tests/unit/consumer_groups/world.h"

using namespace broker::groups::consumer;

namespace {

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed) {
    const std::uint64_t topics = 1 + random_.below(4);
    for (std::uint64_t i = 0; i < topics; ++i) add_topic();
    if (random_.chance(50)) world_.settings.assignment_interval_ms = 1000;
  }

  // What went wrong; empty: nothing.
  std::string run() {
    const std::uint64_t steps = 50 + random_.below(150);
    for (std::uint64_t i = 0; i < steps; ++i) {
      step();
      if (const std::string problem = check(); !problem.empty()) return problem;
      if (i % 50 == 49) {
        if (const std::string problem = world_.replay_problem(); !problem.empty()) return problem;
      }
    }
    return calm();
  }

 private:
  struct Process {
    FakeClient client;
    bool alive = true;
  };

  void add_topic() {
    world_.topics.add("t" + std::to_string(++topics_made_),
                      static_cast<std::int32_t>(1 + random_.below(8)));
    world_.topics_changed();
  }

  void choose_wishes(FakeClient& client) {
    client.names.clear();
    client.regex.clear();
    static const char* const patterns[] = {"t.*", "t[12]", "t[2-9]", "none"};
    const std::uint64_t kind = random_.below(10);
    if (kind < 2) client.regex = patterns[random_.below(4)];
    if (kind > 0) {
      for (int i = 1; i <= topics_made_; ++i) {
        if (kind > 5 || random_.chance(60)) client.names.push_back("t" + std::to_string(i));
      }
    }
    if (random_.chance(20)) client.assignor = random_.chance(50) ? "range" : "uniform";
  }

  void start_process() {
    auto process = std::make_unique<Process>();
    FakeClient& client = process->client;
    client.id = "m" + std::to_string(++members_made_);
    if (random_.chance(30)) client.instance_id = "i" + std::to_string(random_.below(4));
    choose_wishes(client);
    client.beat(world_);
    processes_.push_back(std::move(process));
  }

  void step() {
    if (processes_.empty() || (processes_.size() < 8 && random_.chance(8))) return start_process();
    const std::size_t index = random_.below(processes_.size());
    Process& process = *processes_[index];
    switch (random_.below(60)) {
      case 0:
        kill(index);
        break;
      case 1:
        process.client.leave(world_);
        processes_.erase(at(index));
        break;
      case 2:
        leave_for_a_while(index);
        break;
      case 3:
        choose_wishes(process.client);
        process.client.wants_changed = true;
        break;
      case 4:
        if (topics_made_ < 8) add_topic();
        break;
      case 5:
        change_topics();
        break;
      case 6:
        world_.pass(static_cast<std::int64_t>(random_.below(5000)));
        break;
      case 7:
        world_.pass(11'000);
        beat_all();
        break;
      case 8:
        beat(process, true);
        break;
      case 9:
        if (random_.chance(50)) world_.restart();
        break;
      default:
        beat(process, false);
    }
  }

  std::vector<std::unique_ptr<Process>>::iterator at(std::size_t index) {
    return processes_.begin() + static_cast<std::ptrdiff_t>(index);
  }

  void beat(Process& process, bool lost) { process.client.beat(world_, lost); }
  void beat_all() {
    for (auto& process : processes_) beat(*process, false);
  }

  // Its session ends; the others go on.
  void kill(std::size_t index) {
    processes_.erase(at(index));
    for (int i = 0; i < 10; ++i) {
      world_.pass(5'000);
      beat_all();
    }
  }

  void leave_for_a_while(std::size_t index) {
    FakeClient& client = processes_[index]->client;
    if (!client.instance_id || client.epoch == joining_epoch) return;
    client.leave(world_, leaving_static_epoch);
    client.id = "m" + std::to_string(++members_made_);
  }

  void change_topics() {
    const std::string name =
        "t" + std::to_string(1 + random_.below(static_cast<std::uint64_t>(topics_made_)));
    const auto topic = world_.topics.find(name);
    if (!topic || topic->partitions > 20) return;
    if (random_.chance(70))
      world_.topics.grow(name, topic->partitions + 1);
    else
      world_.topics.remove(name);
    world_.topics_changed();
  }

  // No two clients may read one partition, as they see it themselves.
  std::string check() const {
    if (const std::string problem = world_.problem(); !problem.empty()) return problem;
    std::set<base::TopicPartition> owned;
    for (const auto& process : processes_) {
      const FakeClient& client = process->client;
      if (world_.group == nullptr || world_.group->find(client.id) == nullptr) continue;
      for (const auto& [topic, partitions] : client.owned) {
        for (const std::int32_t partition : partitions) {
          if (!owned.insert({topic, partition}).second) return "two clients own a partition";
        }
      }
    }
    return "";
  }

  // Everybody is told what is to be, the dead are out, and nothing changes any more.
  bool at_rest() const {
    if (!world_.group) return processes_.empty();
    if (world_.group->state() == GroupState::empty) return processes_.empty();
    if (world_.group->state() != GroupState::stable) return false;
    return std::ranges::all_of(world_.group->members(), [this](const auto& member) {
      const Partitions assigned = without_epochs(member.second.assigned);
      return std::ranges::any_of(processes_, [&](const auto& process) {
        return process->client.id == member.first && process->client.owned == assigned;
      });
    });
  }

  // Without faults the group comes to rest: after the sessions of the dead at the latest.
  std::string calm() {
    int quiet = 0;
    std::size_t written = world_.log.size();
    for (int i = 0; i < 60 && quiet < 8; ++i) {
      world_.pass(2'000);
      beat_all();
      if (const std::string problem = check(); !problem.empty()) return problem;
      quiet = at_rest() && world_.log.size() == written ? quiet + 1 : 0;
      written = world_.log.size();
    }
    if (quiet < 8) return "it does not come to rest";
    if (const std::string problem = world_.replay_problem(); !problem.empty()) return problem;
    for (const auto& process : processes_) {  // two with one instance id fence each other
      const FakeClient& client = process->client;
      if (!client.instance_id && (!world_.group || !world_.group->find(client.id)))
        return "a client that is there is no member";
    }
    if (!world_.group || world_.group->members().empty()) return "";
    std::set<base::Uuid> wanted;
    std::size_t have = 0, want = 0;
    for (const auto& [id, member] : world_.group->members()) {
      if (without_epochs(member.assigned) != world_.group->target_of(id)) return "not the target";
      have += count_of(without_epochs(member.assigned));
      for (const auto& topic : subscribed_topic_ids(member, world_.group->regexes(), world_.topics))
        wanted.insert(topic);
    }
    for (const base::Uuid& topic : wanted)
      want += static_cast<std::size_t>(world_.topics.find(topic)->partitions);
    return have == want ? "" : "partitions are left over";
  }

  base::Random random_;
  World world_;
  std::vector<std::unique_ptr<Process>> processes_;
  int topics_made_ = 0, members_made_ = 0;
};

}  // namespace

TEST_CASE("groups in random worlds") {
  const auto [first, last] = seeds(10'000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("SEED=" << seed);
    REQUIRE(Simulation(seed).run() == "");
  }
}
