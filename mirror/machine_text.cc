#include "mirror/machine_text.h"

#include <array>

namespace mirror {
namespace {

std::string text(const std::optional<LeaderEpoch>& epoch) {
  return epoch ? std::to_string(*epoch) : "-";
}

std::string text(const Record& r) {
  std::string out(name(r.state));
  if (r.state == MirrorState::failed) {
    out += " was=";
    out += name(r.previous_state);
  }
  if (r.retry_attempt != 0) out += " attempt=" + std::to_string(r.retry_attempt);
  if (r.position)
    out += " position=" + text(r.position->epoch) + ":" + std::to_string(r.position->offset);
  if (r.skipped)
    out += " skipped=" + std::to_string(r.skipped->from) + ".." + std::to_string(r.skipped->to);
  return out;
}

struct Arguments {
  std::string operator()(const Persist& a) const { return text(a.record); }
  std::string operator()(const Align& a) const {
    return "epoch=" + text(a.epoch) + (a.look_up_reverse ? " reverse" : "");
  }
  std::string operator()(const Truncate& a) const {
    return std::to_string(a.offset) + " epoch=" + text(a.epoch);
  }
  std::string operator()(const RestartAt& a) const { return std::to_string(a.offset); }
  std::string operator()(const Fetch& a) const {
    return std::to_string(a.offset) + " last=" + text(a.last_epoch) +
           " source=" + text(a.source_epoch);
  }
  std::string operator()(const AdvanceLogStart& a) const { return std::to_string(a.offset); }
  std::string operator()(const BumpEpoch& a) const { return std::to_string(a.at_least); }
  std::string operator()(const ScheduleRetry& a) const { return std::to_string(a.delay_ms) + "ms"; }
  template <class A>
  std::string operator()(const A&) const {
    return {};
  }
};

constexpr std::array<std::string_view, std::variant_size_v<Action>> action_names = {
    "RefuseWrites", "AllowWrites",       "Persist",
    "Forget",       "Inspect",           "Align",
    "Truncate",     "RestartAt",         "Fetch",
    "Append",       "AdvanceLogStart",   "BumpEpoch",
    "SettleGroups", "WriteAbortMarkers", "WriteProducerIdReset",
    "ScheduleRetry"};

constexpr std::array<std::string_view, std::variant_size_v<Event>> event_names = {
    "Restore",      "LeadershipLost", "Start",          "Pause",           "Resume",
    "Stop",         "Recover",        "SourceReturned", "SourceEpochSeen", "MarkFailed",
    "DeleteMirror", "LogIs",          "Aligned",        "Fetched",         "NothingNew",
    "FetchRefused", "Appended",       "EpochBumped",    "MarkersWritten",  "ResetWritten",
    "Done",         "RetryDue",       "Failed",         "Timeout"};

}  // namespace

std::string to_string(const Action& action) {
  std::string out(action_names[action.index()]);
  const std::string arguments = std::visit(Arguments{}, action);
  if (!arguments.empty()) out += "(" + arguments + ")";
  return out;
}

std::string_view event_name(const Event& event) {
  return event_names[event.index()];
}

}  // namespace mirror
