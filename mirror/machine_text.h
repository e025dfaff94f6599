// The machine's words as one line of text each, for the log and for the transcripts of the tests.
#pragma once
#include <string>

#include "mirror/machine.h"

namespace mirror {

// "Fetch(10 last=3 source=4)": the name, then what matters, without tickets.
std::string to_string(const Action& action);
// "Fetched" and so on: the name alone.
std::string_view event_name(const Event& event);

}  // namespace mirror
