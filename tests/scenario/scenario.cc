// scenario FILE...            compares each transcript with what the machine does; exit 1 on a
// difference scenario --rewrite FILE...  writes down what the machine does; read the diff before
// you keep it
//
// A transcript is a list of blocks, parted by empty lines: events (one a line, applied in order), a
// line "----", and what came of the last of them. Lines with '#' are remarks. `set` changes
// settings.
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "mirror/machine_text.h"
#include "tests/scenario/words.h"

namespace {

struct Run {
  mirror::State state;
  mirror::Settings settings;

  // What an event did: the state it led to, the actions, and a new error in words.
  std::string apply(const std::string& text) {
    const scenario::Line line(text);
    if (line.command == "set") {
      scenario::apply_settings(line, settings);
      return "-> set\n";
    }
    const std::string error = state.error;
    mirror::Step step = mirror::step(state, scenario::parse_event(line, state), settings);
    state = std::move(step.state);
    std::string out = "-> " + std::string(name(state.state));
    for (const mirror::Action& action : step.actions) out += "  " + to_string(action);
    out += "\n";
    if (state.error != error) out += "   error: " + state.error + "\n";
    return out;
  }
};

// The transcript as the machine writes it.
std::string replay(std::istream& in) {
  Run run;
  std::string out, line, result;
  bool expected = false;
  while (std::getline(in, line)) {
    if (line == "----") {
      out += line + "\n" + result;
      expected = true;
    } else if (line.empty()) {
      out += "\n";
      expected = false;
    } else if (line.front() == '#') {
      out += line + "\n";
    } else if (!expected) {
      result = run.apply(line);
      out += line + "\n";
    }
  }
  return out;
}

void show_difference(const std::string& is, const std::string& expected) {
  std::istringstream a(expected), b(is);
  std::string x, y;
  for (int number = 1;; ++number) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return;
    if (x != y || more_a != more_b) {
      std::printf("  line %d\n  expected %s\n  is       %s\n", number, more_a ? x.c_str() : "(end)",
                  more_b ? y.c_str() : "(end)");
      return;
    }
  }
}

bool run_file(const char* path, bool rewrite) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().find("----") == std::string::npos) {
    std::printf("%s: cannot be read, or expects nothing\n", path);
    return false;
  }
  std::istringstream in(text.str());
  std::string is;
  try {
    is = replay(in);
  } catch (const std::exception& e) {
    std::printf("%s: %s\n", path, e.what());
    return false;
  }
  if (rewrite) {
    std::ofstream(path) << is;
    return true;
  }
  if (is == text.str()) return true;
  std::printf("%s differs\n", path);
  show_difference(is, text.str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const bool rewrite = argc > 1 && std::string_view(argv[1]) == "--rewrite";
  const int first = rewrite ? 2 : 1;
  if (argc <= first) {
    std::fprintf(stderr, "usage: scenario [--rewrite] FILE...\n");
    return 2;
  }
  int failed = 0;
  for (int i = first; i < argc; ++i) failed += run_file(argv[i], rewrite) ? 0 : 1;
  return failed == 0 ? 0 : 1;
}
