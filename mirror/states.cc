#include "mirror/states.h"

namespace mirror {

std::string_view name(MirrorState state) {
  switch (state) {
    case MirrorState::unknown:
      return "UNKNOWN";
    case MirrorState::log_alignment:
      return "LOG_ALIGNMENT";
    case MirrorState::epoch_fencing:
      return "EPOCH_FENCING";
    case MirrorState::ule_recovery:
      return "ULE_RECOVERY";
    case MirrorState::mirroring:
      return "MIRRORING";
    case MirrorState::pausing:
      return "PAUSING";
    case MirrorState::paused:
      return "PAUSED";
    case MirrorState::stopping:
      return "STOPPING";
    case MirrorState::stopped:
      return "STOPPED";
    case MirrorState::failed:
      return "FAILED";
  }
  return "UNKNOWN";
}

std::optional<MirrorState> state_from_number(std::int8_t number) {
  if (number < -1 || number > 8) return std::nullopt;
  return static_cast<MirrorState>(number);
}

bool legal_transition(MirrorState from, MirrorState to) {
  using enum MirrorState;
  if (from == to) return true;
  switch (to) {
    case log_alignment:
      return from == unknown || from == stopped || from == failed || from == paused;
    case epoch_fencing:
      return from == mirroring || from == log_alignment || from == ule_recovery;
    case ule_recovery:
      return from == mirroring;
    case mirroring:
      return from == log_alignment || from == epoch_fencing || from == ule_recovery ||
             from == paused || from == failed;
    case pausing:
      return from == mirroring || from == log_alignment || from == epoch_fencing ||
             from == ule_recovery || from == failed;
    case paused:
      return from == pausing;
    case stopping:
      return from != stopped;
    case stopped:
      return from == stopping;
    case failed:
      return true;
    case unknown:
      return from == stopped;
  }
  return false;
}

}  // namespace mirror
