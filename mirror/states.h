// The states of a mirrored partition: KIP-1279's names and numbers, and the edges between them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace mirror {

enum class MirrorState : std::int8_t {
  unknown = -1,       // no record: nobody has asked for this partition yet
  log_alignment = 0,  // finding out what both logs share, cutting away the rest
  epoch_fencing = 1,  // raising our leader epoch above the source's
  ule_recovery = 2,   // cutting what the source lost in an unclean leader election
  mirroring = 3,      // fetching
  pausing = 4,
  paused = 5,    // not fetching, still read-only
  stopping = 6,  // failing over
  stopped = 7,   // writable here
  failed = 8,    // waiting for a retry, or for an operator
};

// "LOG_ALIGNMENT" and so on, as the command line and the describe API spell them.
std::string_view name(MirrorState state);
// The state with this number in a persisted record. Absent for every other number: drafts of the
// KIP wrote 16 as the previous state where -1 was meant.
std::optional<MirrorState> state_from_number(std::int8_t number);

// Whether a partition may go from one state to another. Staying is always legal. The KIP's table,
// and these edges of our own:
//   LOG_ALIGNMENT, ULE_RECOVERY -> EPOCH_FENCING   the KIP draws the first; it saves a detour
//   LOG_ALIGNMENT, EPOCH_FENCING, ULE_RECOVERY, FAILED -> PAUSING   else an operator could not stop
//   a
//       partition from fetching that happens to be between two states, or whose source is down
//   PAUSED -> LOG_ALIGNMENT   when the pause came before the log was aligned
//   UNKNOWN -> STOPPING   fail over a partition whose source was never reached
//   STOPPED -> UNKNOWN    the mirror was deleted, the record goes
bool legal_transition(MirrorState from, MirrorState to);

}  // namespace mirror
