#include "tests/scenario/words.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

namespace scenario {
namespace {

using namespace mirror;

[[noreturn]] void bad(const std::string& what) {
  throw std::runtime_error(what);
}

std::optional<LeaderEpoch> to_epoch(const std::string& text) {
  if (text == "-") return std::nullopt;
  return static_cast<LeaderEpoch>(std::stol(text));
}

MirrorState to_state(const std::string& text) {
  for (std::int8_t n = -1; n <= 8; ++n)
    if (const auto state = state_from_number(n); state && name(*state) == text) return *state;
  bad("no such state: " + text);
}

Failure to_failure(const std::string& text) {
  for (int n = 0; n <= static_cast<int>(Failure::unsupported); ++n)
    if (name(static_cast<Failure>(n)) == text) return static_cast<Failure>(n);
  bad("no such failure: " + text);
}

Reverse to_reverse(const std::string& text) {
  constexpr std::array names = {"unsupported", "none", "loop", "not_stopped", "stopped"};
  const auto it = std::ranges::find(names, text);
  if (it == names.end()) bad("no such reverse: " + text);
  return static_cast<Reverse>(it - names.begin());
}

Restore to_restore(const Line& line) {
  Restore out;
  out.leader_epoch = static_cast<LeaderEpoch>(line.number("leader", 0));
  if (line.words.empty()) return out;
  Record record;
  record.state = to_state(line.words.front());
  if (line.values.contains("was")) record.previous_state = to_state(line.values.at("was"));
  record.retry_attempt = static_cast<std::int32_t>(line.number("attempt", 0));
  if (record.retry_attempt != 0) record.error = "an earlier failure";
  record.position = line.position("position");
  out.record = record;
  return out;
}

Aligned to_aligned(const Line& line, Ticket ticket) {
  Aligned out;
  out.ticket = ticket;
  out.same_topic_id = line.has("same_id");
  out.source_epoch = line.epoch("source");
  out.source_log_start = line.number("start", 0);
  out.source_log_end = line.number("end", 0);
  if (const auto answer = line.position("answer")) {
    if (!answer->epoch) bad("an answer has an epoch; leave it out for \"undefined\"");
    out.epoch_end = EpochEnd{*answer->epoch, answer->offset};
  }
  if (line.values.contains("reverse")) out.reverse = to_reverse(line.values.at("reverse"));
  out.reverse_position = line.position("position");
  return out;
}

}  // namespace

Line::Line(const std::string& text) {
  std::istringstream in(text);
  in >> command;
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos)
      words.push_back(word);
    else
      values[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

bool Line::has(const std::string& word) const {
  return std::ranges::find(words, word) != words.end();
}

std::int64_t Line::number(const std::string& key, std::int64_t otherwise) const {
  const auto it = values.find(key);
  return it == values.end() ? otherwise : std::stoll(it->second);
}

std::optional<LeaderEpoch> Line::epoch(const std::string& key) const {
  const auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  return to_epoch(it->second);
}

std::optional<Position> Line::position(const std::string& key) const {
  const auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  const auto colon = it->second.find(':');
  if (colon == std::string::npos) bad("a position is EPOCH:OFFSET");
  return Position{.epoch = to_epoch(it->second.substr(0, colon)),
                  .offset = std::stoll(it->second.substr(colon + 1))};
}

Event parse_event(const Line& line, const State& state) {
  const std::string& c = line.command;
  const Ticket ticket = state.ticket - (line.has("stale") ? 1 : 0);
  if (c == "restore") return to_restore(line);
  if (c == "lost") return LeadershipLost{};
  if (c == "start") return Start{.adopt = line.has("adopt"), .from_scratch = line.has("scratch")};
  if (c == "pause") return Pause{};
  if (c == "resume") return Resume{};
  if (c == "stop") return Stop{};
  if (c == "recover") return Recover{};
  if (c == "source_returned") return SourceReturned{};
  if (c == "source_epoch")
    return SourceEpochSeen{static_cast<LeaderEpoch>(line.number("epoch", 0))};
  if (c == "mark_failed") return MarkFailed{to_failure(line.words.at(0)), "as reconcile says"};
  if (c == "delete_mirror") return DeleteMirror{};
  if (c == "log")
    return LogIs{
        .ticket = ticket,
        .log_start = line.number("start", 0),
        .log_end = line.number("end", 0),
        .last_epoch = line.epoch("epoch"),
        .leader_epoch = static_cast<LeaderEpoch>(line.number("leader", state.leader_epoch))};
  if (c == "aligned") return to_aligned(line, ticket);
  if (c == "fetched")
    return Fetched{.ticket = ticket,
                   .next_offset = line.number("next", 0),
                   .last_epoch = line.epoch("epoch"),
                   .source_log_start = line.number("start", 0)};
  if (c == "nothing_new") return NothingNew{ticket, line.number("start", 0)};
  if (c == "refused") return FetchRefused{ticket, "OFFSET_OUT_OF_RANGE"};
  if (c == "appended") return Appended{ticket, line.number("end", 0), line.epoch("epoch")};
  if (c == "bumped") return EpochBumped{ticket, static_cast<LeaderEpoch>(line.number("epoch", 0))};
  if (c == "markers") return MarkersWritten{ticket};
  if (c == "reset") return ResetWritten{ticket};
  if (c == "done") return Done{ticket};
  if (c == "due") return RetryDue{ticket};
  if (c == "failed") return Failed{ticket, to_failure(line.words.at(0)), "as the driver says"};
  if (c == "timeout") return Timeout{ticket};
  bad("no such word: " + c);
}

void apply_settings(const Line& line, Settings& settings) {
  for (const auto& [key, value] : line.values) {
    if (key == "ule")
      settings.support_unclean_leader_election = value == "on";
    else if (key == "trim")
      settings.on_source_trimmed = value == "fail" ? TrimPolicy::fail : TrimPolicy::fast_forward;
    else if (key == "attempts")
      settings.retry.max_attempts = std::stoi(value);
    else
      bad("no such setting: " + key);
  }
}

}  // namespace scenario
