// Clients of both protocols in one group, which so changes its own: they join, die, come back under
// their instance ids, commit; answers get lost and the coordinator is restarted. SEEDS=n runs so
// many, SEED=n only that one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "tests/lib/seeds.h"
#include "tests/unit/consumer_groups/mixed_world.h"

namespace broker::groups::mixed {
namespace {

using consumer::FakeClient;

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed), c_(seed, settings(seed)) {
    both_ways_ = settings(seed).migration_policy == consumer::MigrationPolicy::bidirectional;
  }

  // What went wrong; empty: nothing.
  std::string run() {
    const std::uint64_t steps = 40 + random_.below(160);
    for (std::uint64_t i = 0; i < steps; ++i) {
      step();
      if (std::string problem = check(); !problem.empty()) return problem;
    }
    if (std::string problem = calm(); !problem.empty()) return problem;
    return silence();
  }

 private:
  struct Process {
    std::unique_ptr<FakeClient> modern;
    std::unique_ptr<OldClient> old;
  };

  static consumer::Settings settings(std::uint64_t seed) {
    consumer::Settings settings;
    settings.assignment_interval_ms = seed % 3 ? 0 : 1000;
    constexpr consumer::MigrationPolicy policies[] = {consumer::MigrationPolicy::upgrade,
                                                      consumer::MigrationPolicy::downgrade,
                                                      consumer::MigrationPolicy::disabled};
    if (seed % 4 == 0) settings.migration_policy = policies[seed / 4 % 3];
    return settings;
  }

  std::vector<std::string> some_names() {
    if (random_.chance(20)) return {"u"};
    return random_.chance(50) ? std::vector<std::string>{"t"} : std::vector<std::string>{"t", "u"};
  }
  void start() {
    std::optional<std::string> instance_id;
    std::vector<std::string> names = some_names();
    // A classic group takes no notice of what a static member wants that takes its own place again:
    // each wants the same for ever.
    if (random_.chance(40)) {
      const std::uint64_t which = random_.below(3);
      instance_id = "i" + std::to_string(which);
      names = which == 0 ? std::vector<std::string>{"t"} : std::vector<std::string>{"t", "u"};
    }
    // Two at a time with one instance id would fence each other for ever.
    for (const Process& other : processes_)
      if (instance_id && instance_of(other) == instance_id) return;
    Process process;
    if (random_.chance(50)) {
      process.modern = std::make_unique<FakeClient>();
      process.modern->id = "m" + std::to_string(++made_);
      process.modern->instance_id = instance_id;
      process.modern->names = std::move(names);
    } else {
      process.old = std::make_unique<OldClient>();
      process.old->instance_id = instance_id;
      process.old->names = std::move(names);
    }
    processes_.push_back(std::move(process));
  }
  static const std::optional<std::string>& instance_of(const Process& process) {
    return process.modern ? process.modern->instance_id : process.old->instance_id;
  }

  void step() {
    if (processes_.empty() || (processes_.size() < 6 && random_.chance(10))) return start();
    const std::size_t index = random_.below(processes_.size());
    Process& process = processes_[index];
    switch (random_.below(40)) {
      case 0:  // without a word
        processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case 1:
        if (process.modern)
          process.modern->leave(c_, static_leave(process));
        else
          process.old->leave(c_);
        processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case 2:
        restart();
        break;
      case 3:
        c_.pass(static_cast<std::int64_t>(random_.below(15'000)));
        break;
      case 4:
        if (random_.chance(30)) c_.grow(random_.chance(50) ? "t" : "u");
        break;
      case 5:
        commit_from_outside();
        break;
      case 6:
        go_on(process, true);
        break;
      case 7:
      case 8:
      case 9:
        commit(process);
        break;
      case 10:
      case 11:
      case 12:
        c_.pass(static_cast<std::int64_t>(random_.below(2'000)));
        break;
      default:
        go_on(process, false);
    }
  }
  std::int32_t static_leave(const Process& process) {
    return process.modern->instance_id && random_.chance(50) ? consumer::leaving_static_epoch
                                                             : consumer::leaving_epoch;
  }
  void restart() {
    c_.restart();
    for (Process& process : processes_)
      if (process.old) process.old->disconnect();
  }
  void go_on(Process& process, bool lost) {
    if (process.modern)
      process.modern->beat(c_, lost);
    else
      process.old->go_on(c_);
  }

  // ---- Offsets.

  ErrorCode commit(const std::string& member, const std::optional<std::string>& instance,
                   std::int32_t epoch) {
    OffsetCommit what;
    what.group = the_group;
    what.member_id = member;
    what.instance_id = instance;
    what.generation_or_epoch = epoch;
    what.entries.push_back({"t", {}, 0, ++last_offset_, 3, "m"});
    const ErrorCode error =
        c_.run(c_.door().commit(what, {9, "client", "/127.0.0.1"}, c_.now())).at(0);
    if (error == ErrorCode::none) acknowledged_ = last_offset_;
    return error;
  }
  void commit(Process& process) {
    if (process.modern && process.modern->epoch > 0)
      commit(process.modern->id, process.modern->instance_id, process.modern->epoch);
    if (process.old && process.old->stable)
      commit(process.old->id, process.old->instance_id, process.old->generation);
  }
  void commit_from_outside() {
    const bool has_members = (c_.modern() && !c_.modern()->members().empty()) ||
                             (c_.classic() && !c_.classic()->members().empty());
    if (commit("", std::nullopt, -1) == ErrorCode::none && has_members) intruded_ = true;
  }

  // ---- What must hold.

  bool is_member(const Process& process) const {
    if (const ConsumerGroup* group = c_.modern()) {
      const consumer::Member* member =
          group->find(process.modern ? process.modern->id : process.old->id);
      return member && member->classic.has_value() == (process.old != nullptr);
    }
    const ClassicGroup* group = c_.classic();
    return group && process.old && group->find(process.old->id) != nullptr;
  }
  std::int32_t generation_of(const std::string& old_client) const {
    return c_.modern() ? c_.modern()->find(old_client)->epoch : c_.classic()->generation;
  }
  // As the client itself sees it.
  NamedPartitions owned_by(const Process& process) const {
    if (process.old) return process.old->owned;
    NamedPartitions out;
    for (const auto& [topic, partitions] : process.modern->owned)
      out[c_.topics().find(topic)->name] = partitions;
    return out;
  }

  std::string check() const {
    if (!c_.problem().empty()) return c_.problem();
    if (intruded_) return "a commit from outside while there are members";
    if (acknowledged_) {
      const CommittedOffset* kept = c_.state().offsets().find(the_group, "t", 0);
      if (!kept || kept->offset != *acknowledged_) return "an offset is lost";
    }
    std::set<std::pair<std::string, std::int32_t>> owned;
    for (const Process& process : processes_) {
      if (!is_member(process)) continue;  // it will be told
      // One that has yet to hear of a generation: the classic protocol does not wait for it.
      if (process.old && process.old->generation != generation_of(process.old->id)) continue;
      for (const auto& [topic, partitions] : owned_by(process)) {
        for (const std::int32_t partition : partitions)
          if (!owned.emplace(topic, partition).second) return "two clients own a partition";
      }
    }
    return "";
  }

  bool is_refused(const Process& process) const {
    if (both_ways_) return false;
    if (process.old) return process.old->last_error == ErrorCode::inconsistent_group_protocol;
    return process.modern->last_error == ErrorCode::group_id_not_found;
  }
  bool at_rest() const {
    std::size_t live = 0;
    for (const Process& process : processes_) {
      if (is_refused(process)) continue;
      ++live;
      if (!is_member(process)) return false;
      if (process.old ? !process.old->stable : process.modern->epoch <= 0) return false;
    }
    if (const ConsumerGroup* group = c_.modern())
      return group->members().size() == live &&
             group->state() ==
                 (live == 0 ? consumer::GroupState::empty : consumer::GroupState::stable);
    const ClassicGroup* group = c_.classic();
    return group ? group->members().size() == live &&
                       group->is_in(live == 0 ? ClassicState::empty : ClassicState::stable)
                 : live == 0;
  }
  // Without faults the group comes to rest, and whoever is there has what it wants.
  std::string calm() {
    constexpr int turns_max = 150, quiet_min = 10;
    int quiet = 0;
    for (int i = 0; i < turns_max && quiet < quiet_min; ++i) {
      const std::size_t written = c_.written();
      for (Process& process : processes_) go_on(process, false);
      c_.pass(1000);
      if (std::string problem = check(); !problem.empty()) return problem;
      quiet = at_rest() && c_.written() == written ? quiet + 1 : 0;
    }
    if (quiet < quiet_min) return "it does not come to rest";
    std::set<std::string> wanted;
    std::size_t have = 0, want = 0;
    for (const Process& process : processes_) {
      if (is_refused(process)) continue;
      const auto& names = process.modern ? process.modern->names : process.old->names;
      wanted.insert(names.begin(), names.end());
      for (const auto& [topic, partitions] : owned_by(process)) have += partitions.size();
    }
    // After a downgrade without a rebalance nobody leads, and nobody sees that a topic has grown.
    const auto leads = [](const Process& one) { return one.old && one.old->leads(); };
    if (c_.classic() && std::ranges::none_of(processes_, leads)) return "";
    for (const std::string& topic : wanted)
      want += static_cast<std::size_t>(c_.topics().find(topic)->partitions);
    return have == want ? "" : "partitions are left over";
  }
  // Nobody is thought alive for ever.
  std::string silence() {
    processes_.clear();
    for (int i = 0; i < 20; ++i) c_.pass(30'000);
    if (c_.modern() && !c_.modern()->members().empty()) return "a ghost";
    if (c_.classic() && !c_.classic()->members().empty()) return "a ghost";
    return check();
  }

  base::Random random_;
  Coordinated c_;
  std::vector<Process> processes_;
  std::optional<base::Offset> acknowledged_;
  base::Offset last_offset_ = 0;
  bool intruded_ = false, both_ways_ = true;
  int made_ = 0;
};

}  // namespace

TEST_CASE("groups of both protocols in random worlds") {
  const auto [first, last] = seeds(10'000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("SEED=" << seed);
    REQUIRE(Simulation(seed).run() == "");
  }
}

}  // namespace broker::groups::mixed
