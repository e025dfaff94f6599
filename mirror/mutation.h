// Deliberate mistakes, one at a time, to prove that the simulator would find them. In the product
// every `mutated(...)` is the constant false; tests/sim compiles the machine with MIRROR_MUTATIONS.
#pragma once
#include <cstdint>

namespace mirror {

enum class Mutation : std::uint8_t {
  none,
  accept_stale_ticket,        // outcomes of superseded actions count
  skip_bump_at_stop,          // open with an epoch that the source may use as well
  markers_before_bump,        // local records carry the source's epoch
  position_not_persisted,     // a crash after the first local write loses where the copy ended
  position_not_frozen,        // a second pass through STOPPING captures it again
  allow_before_persist,       // clients write while a crash would still say STOPPING
  skip_refuse_writes,         // a stopped partition is cut while clients write
  forget_cut_on_failure,      // a failed first cut is retried as a mere look
  cut_to_source_end_only,     // on divergence, ignore where our own epoch ends
  append_above_leader_epoch,  // no fencing for a batch that is too new
  skip_inspect_on_resume,     // trust the memory instead of the log
  stop_waits_in_failed,       // a failed partition cannot be failed over
  stop_can_fail,              // a failing disk leaves a failover FAILED instead of unfinished
  skip_settle_groups,         // consumers begin where the last periodic round left them
  skip_producer_reset,        // mirrored producer state meets local producer ids
  skip_abort_markers,         // transactions of the dead source stay open
  retry_without_bound,        // failures that should end are tried for ever
  give_up_unreachable,        // a long outage of the source becomes final
  ignore_reset_source,        // a re-created topic is taken for the old one
  ignore_trim,                // a hole in the log passes without a word
  follow_unclean_always,      // drop records although the operator did not allow it
};

#ifdef MIRROR_MUTATIONS
extern Mutation active_mutation;
inline bool mutated(Mutation mutation) {
  return active_mutation == mutation;
}
#else
constexpr bool mutated(Mutation) {
  return false;
}
#endif

}  // namespace mirror
