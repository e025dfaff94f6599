// Members of one consumer group that read nothing: they join, send heartbeats, commit, and leave.
// Told are the times until the group has come to rest, and how long heartbeats and commits take.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>

#include "protocol/error_code.h"
#include "protocol/messages/consumer_group_heartbeat.gen.h"
#include "protocol/messages/find_coordinator.gen.h"
#include "protocol/messages/heartbeat.gen.h"
#include "protocol/messages/join_group.gen.h"
#include "protocol/messages/leave_group.gen.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/offset_commit.gen.h"
#include "protocol/messages/offset_fetch.gen.h"
#include "protocol/messages/sync_group.gen.h"
#include "tests/bench/kload_link.h"

namespace kload {
namespace {

using protocol::ErrorCode;
using std::chrono::milliseconds;

constexpr std::int16_t join_version = 9, sync_version = 5, beat_version = 4, leave_version = 5,
                       modern_version = 1, commit_version = 9, find_version = 4,
                       offsets_version = 7, metadata_version = 12;
constexpr milliseconds settle_max{300'000};

// Sends and waits: for what comes before the group.
template <class Response, class Request>
Response ask(Link& link, std::int16_t version, const Request& request) {
  link.send(frame(version, request));
  Response response;
  if (!decode(body_of(link.receive(), Request::api_key, version), version, response))
    die("an answer that cannot be read");
  return response;
}

// As consumers of the classic protocol write it: version 0, one topic.
base::Buffer embedded(const std::string& topic, const std::vector<std::int32_t>* partitions) {
  base::Buffer out;
  protocol::Writer writer(out);
  writer.num(std::int16_t{0});
  writer.num(std::int32_t{1});
  writer.text(topic);
  if (partitions) {
    writer.num(static_cast<std::int32_t>(partitions->size()));
    for (const std::int32_t one : *partitions) writer.num(one);
  }
  writer.num(std::int32_t{-1});
  return out;
}

std::vector<std::int32_t> assigned(base::Bytes bytes) {
  std::vector<std::int32_t> partitions;
  if (bytes.empty()) return partitions;
  protocol::Reader reader(bytes, false);
  std::int16_t version = 0;
  std::int32_t topics = 0;
  std::string topic;
  reader.num(version);
  reader.num(topics);
  reader.text(topic);
  reader.array(partitions, sizeof(std::int32_t), [&reader](std::int32_t& one) { reader.num(one); });
  if (!reader.ok() || topics != 1) die("an assignment that cannot be read");
  return partitions;
}

struct Member {
  enum class Asked : std::uint8_t { nothing, join, sync, beat, commit, leave };
  std::unique_ptr<Link> link;
  std::string id;
  std::int32_t epoch = -1;  // the generation of a classic member
  std::vector<std::int32_t> owned;
  Asked asked = Asked::nothing, next = Asked::join;
  bool stable = false;     // of the classic protocol: it has the assignment of its generation
  bool tell_owned = true;  // of the other: what it owns has changed
  Clock::time_point sent, beat_due, commit_due;
};

struct Latencies {
  std::vector<float> beats, commits;
};

class Group {
 public:
  Group(const Target& target, const Options& options)
      : target_(target), options_(options), modern_(options.protocol == "consumer") {
    prepare();
  }

  void add(int count) {
    for (int i = 0; i < count; ++i) {
      Member& member = *members_.emplace_back(std::make_unique<Member>());
      member.link = std::make_unique<Link>(target_);
      if (modern_) member.id = fmt::format("member-{}", ++made_);
      if (modern_) member.epoch = 0;
    }
  }
  // Heartbeats and commits at even distances, as those of clients that started at any time.
  void spread() {
    const auto now = Clock::now();
    const auto count = static_cast<double>(members_.size());
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const double part = (static_cast<double>(i) + 0.5) / count;
      const auto after = [&](Clock::duration all) {
        return now + std::chrono::duration_cast<Clock::duration>(part * all);
      };
      members_[i]->beat_due = after(beat_interval_);
      members_[i]->commit_due = after(milliseconds(options_.commit_ms));
    }
  }
  void remove_last() { members_.back()->next = Member::Asked::leave; }

  // Seconds until nothing changed any more, and each partition is somebody's.
  double settle() {
    const auto began = Clock::now();
    std::optional<Clock::time_point> since;
    changed_ = true;
    for (;;) {
      turn();
      const auto now = Clock::now();
      if (changed_) since = is_settled() ? std::optional(last_change_ = now) : std::nullopt;
      changed_ = false;
      if (since && now - *since > quiet()) break;
      if (now - began > settle_max) die("the group does not come to rest in five minutes");
    }
    settled_epoch_ = members_.front()->epoch;
    return std::chrono::duration<double>(*since - began).count();
  }
  Latencies steady(double seconds) {
    latencies_ = {};
    measures_ = true;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
    while (Clock::now() < end) turn();
    measures_ = false;
    return std::move(latencies_);
  }

 private:
  // The coordinator is there, and has loaded.
  void prepare() {
    Link link(target_);
    protocol::FindCoordinatorRequest find;
    find.coordinator_keys = {options_.group};
    protocol::OffsetFetchRequest offsets;
    offsets.group_id = options_.group;
    offsets.topics.reset();
    for (int i = 0;; ++i) {
      const auto found = ask<protocol::FindCoordinatorResponse>(link, find_version, find);
      if (found.coordinators.at(0).error_code == 0 &&
          ask<protocol::OffsetFetchResponse>(link, offsets_version, offsets).error_code == 0)
        break;
      if (i == 300) die("there is no coordinator");
      std::this_thread::sleep_for(milliseconds(100));
    }
    protocol::MetadataRequest metadata;
    metadata.topics.emplace().emplace_back().name = target_.topic;
    const auto known = ask<protocol::MetadataResponse>(link, metadata_version, metadata);
    topic_id_ = known.topics.at(0).topic_id;
    if (known.topics[0].error_code != 0) die("there is no such topic");
  }

  // A change may follow with anybody's next heartbeat.
  Clock::duration quiet() const {
    return std::max<Clock::duration>(2 * beat_interval_, milliseconds(1500));
  }

  bool is_settled() const {
    std::size_t owned = 0;
    for (const auto& member : members_) {
      if (member->next == Member::Asked::leave || member->asked == Member::Asked::leave)
        return false;
      if (member->epoch != members_.front()->epoch || (!modern_ && !member->stable)) return false;
      owned += member->owned.size();
    }
    return members_.front()->epoch > settled_epoch_ &&
           owned == static_cast<std::size_t>(options_.partitions);
  }

  // Sends what is due, and takes what has come.
  void turn() {
    auto wake = Clock::now() + milliseconds(50);
    polled_.clear();
    for (const auto& member : members_) {
      if (member->asked == Member::Asked::nothing) {
        const auto due = send_due(*member, Clock::now());
        if (due) wake = std::min(wake, *due);
      }
      polled_.push_back({member->link->descriptor(), POLLIN, 0});
    }
    const auto left = std::chrono::duration_cast<milliseconds>(wake - Clock::now()).count();
    if (poll(polled_.data(), polled_.size(), std::max<int>(0, static_cast<int>(left))) < 0)
      die("poll failed");
    for (std::size_t i = polled_.size(); i-- > 0;)
      if ((polled_[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) take(i);
  }

  // When the member has something to send next; nothing: it waits for an answer.
  std::optional<Clock::time_point> send_due(Member& member, Clock::time_point now) {
    using Asked = Member::Asked;
    Asked what = member.next;
    if (what == Asked::nothing && member.beat_due <= now) what = Asked::beat;
    if (what == Asked::nothing && member.commit_due <= now) what = Asked::commit;
    if (what == Asked::nothing) return std::min(member.beat_due, member.commit_due);
    member.next = Asked::nothing;
    if (what == Asked::commit && (member.owned.empty() || (!modern_ && !member.stable))) {
      member.commit_due = now + milliseconds(options_.commit_ms);
      return member.commit_due;
    }
    member.asked = what;
    member.sent = now;
    if (what == Asked::commit)
      send_commit(member);
    else if (modern_)
      send_modern(member, what == Asked::leave);
    else
      send_classic(member, what);
    return std::nullopt;
  }

  void send_classic(Member& member, Member::Asked what) {
    if (what == Member::Asked::join) {
      protocol::JoinGroupRequest request;
      request.group_id = options_.group;
      request.session_timeout_ms = 45'000;
      request.rebalance_timeout_ms = 300'000;
      request.member_id = member.id;
      request.protocol_type = "consumer";
      const base::Buffer metadata = embedded(target_.topic, nullptr);
      request.protocols.push_back({"range", metadata});
      member.link->send(frame(join_version, request));
    } else if (what == Member::Asked::sync) {
      send_sync(member);
    } else if (what == Member::Asked::beat) {
      protocol::HeartbeatRequest request;
      request.group_id = options_.group;
      request.member_id = member.id;
      request.generation_id = member.epoch;
      member.link->send(frame(beat_version, request));
    } else {
      protocol::LeaveGroupRequest request;
      request.group_id = options_.group;
      request.members.push_back({member.id, std::nullopt, std::nullopt});
      member.link->send(frame(leave_version, request));
    }
  }

  // The leader of the generation assigns to all.
  void send_sync(Member& member) {
    protocol::SyncGroupRequest request;
    request.group_id = options_.group;
    request.member_id = member.id;
    request.generation_id = member.epoch;
    request.protocol_type = "consumer";
    request.protocol_name = "range";
    std::vector<base::Buffer> kept;
    const auto of = led_.size();
    for (std::size_t i = 0; i < of && leader_ == member.id; ++i) {
      std::vector<std::int32_t> mine;
      for (auto p = static_cast<std::int32_t>(i); p < options_.partitions;
           p += static_cast<std::int32_t>(of))
        mine.push_back(p);
      kept.push_back(embedded(target_.topic, &mine));
    }
    for (std::size_t i = 0; i < kept.size(); ++i) request.assignments.push_back({led_[i], kept[i]});
    member.link->send(frame(sync_version, request));
  }

  void send_modern(Member& member, bool leaves) {
    protocol::ConsumerGroupHeartbeatRequest request;
    request.group_id = options_.group;
    request.member_id = member.id;
    request.member_epoch = leaves ? -1 : member.epoch;
    if (member.epoch == 0) {
      request.rebalance_timeout_ms = 300'000;
      request.subscribed_topic_names = {target_.topic};
      member.tell_owned = true;
    }
    if (member.tell_owned) {
      request.topic_partitions.emplace();
      if (!member.owned.empty()) request.topic_partitions->push_back({topic_id_, member.owned});
      member.tell_owned = false;
    }
    member.link->send(frame(modern_version, request));
  }

  void send_commit(Member& member) {
    protocol::OffsetCommitRequest request;
    request.group_id = options_.group;
    request.member_id = member.id;
    request.generation_id_or_member_epoch = member.epoch;
    auto& topic = request.topics.emplace_back();
    topic.name = target_.topic;
    for (const std::int32_t p : member.owned) {
      auto& one = topic.partitions.emplace_back();
      one.partition_index = p;
      one.committed_offset = 0;
      one.committed_metadata = "";
    }
    member.link->send(frame(commit_version, request));
  }

  void take(std::size_t index) {
    using Asked = Member::Asked;
    Member& member = *members_[index];
    const base::Bytes answer = member.link->receive();
    const Asked asked = std::exchange(member.asked, Asked::nothing);
    const auto now = Clock::now();
    const float ms = std::chrono::duration<float, std::milli>(now - member.sent).count();
    if (asked == Asked::beat) member.beat_due = now + beat_interval_;
    if (asked == Asked::beat && measures_) latencies_.beats.push_back(ms);
    if (asked == Asked::commit) {
      if (measures_) latencies_.commits.push_back(ms);
      member.commit_due = now + milliseconds(options_.commit_ms);
      take_commit(member, answer);
    } else if (asked == Asked::leave) {
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
      changed_ = true;
    } else if (modern_) {
      take_modern(member, answer, now);
    } else {
      take_classic(member, answer, asked, now);
    }
  }

  template <class Response>
  Response read(base::Bytes answer, protocol::ApiKey key, std::int16_t version) {
    Response response;
    if (!decode(body_of(answer, key, version), version, response))
      die("an answer that cannot be read");
    return response;
  }
  static bool is(std::int16_t error, ErrorCode code) {
    return error == static_cast<std::int16_t>(code);
  }

  void take_commit(Member& member, base::Bytes answer) {
    const auto response = read<protocol::OffsetCommitResponse>(
        answer, protocol::ApiKey::offset_commit, commit_version);
    const std::int16_t error = response.topics.at(0).partitions.at(0).error_code;
    // The group has moved on: the next heartbeat says how.
    const bool late = is(error, ErrorCode::rebalance_in_progress) ||
                      is(error, ErrorCode::illegal_generation) ||
                      is(error, ErrorCode::stale_member_epoch);
    if (error != 0 && (!late || measures_)) die(fmt::format("OffsetCommit: error {}", error));
    if (late) member.beat_due = Clock::now();
  }

  void take_modern(Member& member, base::Bytes answer, Clock::time_point now) {
    const auto response = read<protocol::ConsumerGroupHeartbeatResponse>(
        answer, protocol::ApiKey::consumer_group_heartbeat, modern_version);
    if (response.error_code != 0)
      die(fmt::format("ConsumerGroupHeartbeat: error {}", response.error_code));
    if (member.epoch == 0) member.commit_due = now + milliseconds(options_.commit_ms);
    if (response.member_epoch != member.epoch) changed_ = true;
    member.epoch = response.member_epoch;
    beat_interval_ = milliseconds(response.heartbeat_interval_ms);
    member.beat_due = now + beat_interval_;
    if (!response.assignment) return;
    std::vector<std::int32_t> owned;
    for (const auto& topic : response.assignment->topic_partitions)
      owned.insert(owned.end(), topic.partitions.begin(), topic.partitions.end());
    if (owned == member.owned) return;
    // A client gives up and takes what it is told, and says so at once.
    member.owned = std::move(owned);
    member.tell_owned = true;
    member.beat_due = now;
    changed_ = true;
  }

  void take_classic(Member& member, base::Bytes answer, Member::Asked asked,
                    Clock::time_point now) {
    using Asked = Member::Asked;
    std::int16_t error = 0;
    if (asked == Asked::join) {
      error = take_join(member, answer);
    } else if (asked == Asked::sync) {
      const auto response =
          read<protocol::SyncGroupResponse>(answer, protocol::ApiKey::sync_group, sync_version);
      error = response.error_code;
      if (error == 0) {
        member.owned = assigned(response.assignment);
        member.stable = changed_ = true;
        member.beat_due = now + beat_interval_;
        member.commit_due = now + milliseconds(options_.commit_ms);
      }
    } else {
      error = read<protocol::HeartbeatResponse>(answer, protocol::ApiKey::heartbeat, beat_version)
                  .error_code;
    }
    if (error == 0) return;
    if (!is(error, ErrorCode::rebalance_in_progress) && !is(error, ErrorCode::illegal_generation) &&
        !is(error, ErrorCode::member_id_required))
      die(fmt::format("the group's error {}", error));
    member.stable = false;
    member.next = Asked::join;
    changed_ = true;
  }

  std::int16_t take_join(Member& member, base::Bytes answer) {
    const auto response =
        read<protocol::JoinGroupResponse>(answer, protocol::ApiKey::join_group, join_version);
    if (!response.member_id.empty()) member.id = response.member_id;
    if (response.error_code != 0) return response.error_code;
    member.epoch = response.generation_id;
    member.next = Member::Asked::sync;
    if (response.leader == member.id) {
      leader_ = member.id;
      led_.clear();
      for (const auto& one : response.members) led_.push_back(one.member_id);
    }
    return 0;
  }

  const Target& target_;
  const Options& options_;
  const bool modern_;
  base::Uuid topic_id_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<pollfd> polled_;
  Clock::duration beat_interval_ = milliseconds(options_.beat_ms);
  Clock::time_point last_change_;
  bool changed_ = false, measures_ = false;
  std::int32_t settled_epoch_ = -1;
  int made_ = 0;
  std::string leader_;
  std::vector<std::string> led_;  // members, by the leader of the generation
  Latencies latencies_;
};

void tell(const std::string& members) {
  std::printf("{%s}\n", members.c_str());
  std::fflush(stdout);
}

}  // namespace

void groups(const Target& target, const Options& options) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  Group group(target, options);
  tell(R"("phase": "begin")");
  group.add(options.members);
  tell(fmt::format(R"("phase": "all join", "seconds": {:.3f})", group.settle()));
  group.spread();
  Latencies steady = group.steady(options.seconds);
  const std::size_t beats = steady.beats.size(), commits = steady.commits.size();
  tell(fmt::format(R"("phase": "steady", "seconds": {}, "beats": {}, "commits": {}, )"
                   R"("beat": {{{}}}, "commit": {{{}}})",
                   options.seconds, beats, commits, percentiles(steady.beats),
                   percentiles(steady.commits)));
  group.spread();
  group.add(1);
  tell(fmt::format(R"("phase": "one joins", "seconds": {:.3f})", group.settle()));
  group.spread();
  group.remove_last();
  tell(fmt::format(R"("phase": "one leaves", "seconds": {:.3f})", group.settle()));
}

}  // namespace kload
