// Random consumers against the coordinator: they join, assign, commit, fall silent, leave and come
// back, some commit in transactions of producers, and the coordinator is restarted. SEEDS=n runs so
// many, SEED=n only that one.
#include <algorithm>
#include <set>

#include "protocol/base/random.h"
#include "tests/lib/seeds.h"
#include "tests/unit/groups/model_coordinator.h"

using namespace broker::groups;
using namespace broker::groups::test;

namespace {

struct SimMember {
  Consumer who;
  std::optional<Ticket> joining;
  std::optional<Ticket> syncing;
  bool stable = false;   // has its assignment of `who.generation`
  bool refused = false;  // the group is full
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed), c_(limits(seed), seed) {
    members_.resize(1 + random_.below(5));
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Consumer& who = members_[i].who;
      who.group = random_.chance(80) ? "g" : "h";
      who.version = static_cast<std::int16_t>(random_.below(10));
      if (random_.chance(40)) who.instance_id = "i" + std::to_string(i);
      if (random_.chance(30)) who.protocols.push_back({"sticky", bytes("s")});
      who.session_ms = 6000 + static_cast<std::int32_t>(random_.below(20'000));
      who.rebalance_ms = 5000 + static_cast<std::int32_t>(random_.below(60'000));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      hear();
      check();
    }
    settle();
    while (!staged_.empty()) end_transaction(staged_.begin()->first, random_.chance(50));
    CHECK(c_.state().pending_offsets() == PendingOffsets());
    // In the end everybody is silent, and the groups become empty: nobody is waited for for ever.
    for (int i = 0; i < 40; ++i) {
      c_.pass(60'000);
      hear();
    }
    for (const auto& [id, slot] : c_.state().groups())
      CHECK(std::get<ClassicGroup>(slot).members().empty());
    for (const SimMember& one : members_) {
      CHECK(!one.joining);
      CHECK(!one.syncing);
    }
  }

 private:
  static Limits limits(std::uint64_t seed) {
    Limits limits;
    if (seed % 5 == 0) limits.members_max = 2;
    if (seed % 3 == 0) limits.initial_rebalance_delay_ms = 0;
    return limits;
  }

  // Without faults every group comes to rest with all members, whatever was before.
  void settle() {
    constexpr int turns_max = 400;
    int turn = 0;
    for (; turn < turns_max && !at_rest(); ++turn) {
      for (SimMember& one : members_) go_on(one);
      hear();
      c_.pass(500);
      hear();
      check();
    }
    CHECK(turn < turns_max);
  }
  bool at_rest() {
    for (const SimMember& one : members_) {
      if (!one.stable && !one.refused) return false;
      if (one.stable && c_.heartbeat(one.who) != ErrorCode::none) return false;
    }
    return std::ranges::all_of(c_.state().groups(), [](const auto& entry) {
      const auto& group = std::get<ClassicGroup>(entry.second);
      return group.is_in(group.members().empty() ? ClassicState::empty : ClassicState::stable);
    });
  }
  // What a client does next that never gives up.
  void go_on(SimMember& one) {
    if (one.joining || one.syncing || one.refused) return;
    if (one.stable) {
      const ErrorCode error = c_.heartbeat(one.who);
      if (error == ErrorCode::none) return;
      if (error != ErrorCode::rebalance_in_progress) one.who.generation = -1;
      if (error == ErrorCode::unknown_member_id) one.who.member_id.clear();
      begin_join(one);
    } else if (one.who.generation < 0) {
      begin_join(one);
    } else {
      sync(one);
    }
  }

  void step() {
    SimMember& one = members_[random_.below(members_.size())];
    switch (random_.below(14)) {
      case 0:
      case 1:
      case 2:
        join(one);
        break;
      case 3:
      case 4:
      case 5:
        sync(one);
        break;
      case 6:
        heartbeat(one);
        break;
      case 7:
        commit(one);
        break;
      case 8:
        c_.pass(static_cast<std::int64_t>(random_.below(8000)));
        break;
      case 9:
        lapse(one);
        break;
      case 10:
        if (random_.chance(30)) restart();
        break;
      case 11:
        if (random_.chance(50)) c_.clean();
        if (random_.chance(5)) delete_group(one.who.group);
        break;
      case 12:
        stage(one, static_cast<base::ProducerId>(random_.below(3)));
        break;
      case 13:
        end_transaction(static_cast<base::ProducerId>(random_.below(3)), random_.chance(60));
        break;
    }
  }

  // As a client does: it goes on where it is.
  void join(SimMember& one) {
    if (random_.chance(10)) one.who.protocols[0].second = subscription({"t", "u"});
    begin_join(one);
  }
  void begin_join(SimMember& one) {
    one.joining = c_.begin_join(one.who);
    one.syncing.reset();
    one.stable = false;
  }
  void sync(SimMember& one) {
    if (one.joining || one.who.generation < 0) return;
    std::map<std::string, std::string> assignments;
    const auto at = led_.find({one.who.group, one.who.generation});
    if (at != led_.end() && at->second.leader == one.who.member_id)
      for (const std::string& id : at->second.members)
        assignments[id] = id + "@" + std::to_string(one.who.generation);
    one.syncing = c_.begin_sync(one.who, assignments);
  }
  void heartbeat(SimMember& one) {
    if (!one.who.member_id.empty()) c_.heartbeat(one.who);
  }
  void commit(SimMember& one) {
    const base::Offset offset = ++last_offset_;
    if (c_.commit_one(one.who.group, offset, one.stable ? &one.who : nullptr) == ErrorCode::none)
      acknowledged_[one.who.group] = offset;
  }
  // Offsets rise with every attempt, so that of two the larger was written later.
  void stage(SimMember& one, base::ProducerId producer) {
    OffsetCommit what;
    what.group = one.who.group;
    if (one.stable) {
      what.member_id = one.who.member_id;
      what.generation_or_epoch = one.who.generation;
      what.instance_id = one.who.instance_id;
    }
    const base::Offset offset = ++last_offset_;
    what.entries.push_back({"t", {}, 0, offset, 3, "m"});
    what.entries.push_back({"t", {}, 1, offset, 3, std::string(4097, 'x')});  // C15
    const auto errors = c_.stage(producer, what);
    if (errors[0] != ErrorCode::none) return;
    CHECK(errors[1] == ErrorCode::offset_metadata_too_large);
    staged_[producer][what.group] = offset;
  }
  void end_transaction(base::ProducerId producer, bool committed) {
    c_.end_transaction(producer, committed);
    const auto at = staged_.find(producer);
    if (at == staged_.end()) return;
    if (committed)
      for (const auto& [group, offset] : at->second)
        acknowledged_[group] = std::max(acknowledged_[group], offset);
    staged_.erase(at);
  }
  void delete_group(const std::string& id) {
    if (c_.run(c_.state().delete_group(id)) != ErrorCode::none) return;
    acknowledged_.erase(id);
    for (auto& [producer, offsets] : staged_) offsets.erase(id);
    std::erase_if(staged_, [](const auto& one) { return one.second.empty(); });
  }
  bool is_staged(const std::string& id) const {
    return std::ranges::any_of(staged_, [&](const auto& one) { return one.second.contains(id); });
  }
  // The process ends, with or without a word; its successor knows nothing.
  void lapse(SimMember& one) {
    if (!one.who.member_id.empty() && random_.chance(50))
      c_.leave(one.who.group, one.who.member_id);
    one.who.member_id.clear();
    one.who.generation = -1;
    one.joining.reset();
    one.syncing.reset();
    one.stable = false;
  }
  void restart() {
    if (random_.chance(50)) c_.compact();
    c_.restart();
    // A generation whose assignment was not written did not happen: its number comes again.
    for (auto& [id, known] : generations_) {
      if (!c_.has(id)) continue;
      known = std::get<ClassicGroup>(c_.state().groups().at(id)).generation;
      std::erase_if(led_, [&, last = known](const auto& one) {
        return one.first.first == id && one.first.second > last;
      });
    }
    for (SimMember& one : members_) {  // the connections broke
      one.joining.reset();
      one.syncing.reset();
    }
  }

  void hear() {
    for (SimMember& one : members_) {
      if (one.joining)
        if (const JoinReply* reply = c_.joined(*one.joining)) hear_join(one, *reply);
      if (one.syncing)
        if (const SyncReply* reply = c_.synced(*one.syncing)) hear_sync(one, *reply);
    }
  }
  void hear_join(SimMember& one, const JoinReply& reply) {
    one.joining.reset();
    if (reply.error == ErrorCode::unknown_member_id) one.who.member_id.clear();
    if (reply.error == ErrorCode::member_id_required) one.who.member_id = reply.member_id;
    one.refused = reply.error == ErrorCode::group_max_size_reached;
    if (reply.error != ErrorCode::none) return;
    one.who.member_id = reply.member_id;
    one.who.generation = reply.generation;
    if (reply.members.empty()) return;
    // At most one is told that it leads a generation, but for a static one that came back.
    Led& led = led_[{one.who.group, reply.generation}];
    if (!led.leader.empty() && !one.who.instance_id) CHECK(led.leader == reply.member_id);
    led.leader = reply.member_id;
    led.members.clear();
    for (const auto& member : reply.members) led.members.insert(member.member_id);
  }
  void hear_sync(SimMember& one, const SyncReply& reply) {
    one.syncing.reset();
    if (reply.error == ErrorCode::unknown_member_id) one.who.member_id.clear();
    if (reply.error != ErrorCode::none) one.who.generation = -1;
    if (reply.error != ErrorCode::none) return;
    one.stable = true;
    // What it holds was given to it alone, in this generation.
    const std::string what = text(reply.assignment);
    if (what.empty()) return;
    const std::string generation = "@" + std::to_string(one.who.generation);
    CHECK(what.ends_with(generation));
    if (!one.who.instance_id) CHECK(what == one.who.member_id + generation);
    const auto [at, added] = holders_.emplace(std::pair(one.who.group, what), holder_of(one));
    CHECK(at->second == holder_of(one));
  }
  static std::string holder_of(const SimMember& one) {
    return one.who.instance_id.value_or(one.who.member_id);
  }

  void check() {
    for (const auto& [id, slot] : c_.state().groups()) {
      const auto& group = std::get<ClassicGroup>(slot);
      // A deleted group begins anew at nothing.
      std::int32_t& known = generations_[id];
      if (group.generation < known) CHECK(deleted_.contains(id));
      known = group.generation;
      CHECK(group.leader.has_value() == !group.members().empty());
      if (group.leader) CHECK(group.find(*group.leader) != nullptr);
      if (group.is_in(ClassicState::empty)) CHECK(group.members().empty());
    }
    for (auto& [id, known] : generations_) {
      if (c_.has(id)) continue;
      deleted_.insert(id);
      forget(id);
    }
    for (const std::string id : {"g", "h"}) {
      CHECK(c_.state().pending_offsets().has(id, "t", 0) == is_staged(id));
      CHECK(!c_.state().pending_offsets().has(id, "t", 1));
      if (is_staged(id)) CHECK(c_.has(id));  // C14
    }
    // What was acknowledged is there: nothing is older than the retention in this world.
    for (const auto& [group, offset] : acknowledged_) {
      const CommittedOffset* found = c_.state().offsets().find(group, "t", 0);
      REQUIRE(found != nullptr);
      CHECK(found->offset == offset);
    }
  }
  void forget(const std::string& id) {
    std::erase_if(led_, [&](const auto& one) { return one.first.first == id; });
    std::erase_if(holders_, [&](const auto& one) { return one.first.first == id; });
  }

  struct Led {
    std::string leader;
    std::set<std::string> members;
  };
  base::Random random_;
  Coordinator c_;
  std::vector<SimMember> members_;
  base::Offset last_offset_ = 0;
  std::map<std::string, base::Offset> acknowledged_;
  std::map<base::ProducerId, std::map<std::string, base::Offset>> staged_;
  std::map<std::string, std::int32_t> generations_;
  std::set<std::string> deleted_;
  std::map<std::pair<std::string, std::int32_t>, Led> led_;
  std::map<std::pair<std::string, std::string>, std::string> holders_;
};

}  // namespace

TEST_CASE("random consumers and restarts") {
  const auto [first, last] = seeds(10'000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    CAPTURE(seed);
    World world(seed);
    world.run(150);
  }
}
