// Reads the command line against a table of commands. Help texts and error sentences come from the
// same table, so that they cannot disagree with what is accepted.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Option {
  std::string_view name;      // without the dashes
  std::string_view value;     // what stands for the value in help texts; empty: a flag
  std::string_view sentence;  // what it does, with its default
  bool required = false;
  bool repeated = false;  // may be given several times
};

struct Arguments;
// Where a command writes. `terminal`: progress may redraw its line.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;
};
enum class ExitCode : int;
using Run = ExitCode (*)(const Arguments&, Output&);

struct Command {
  std::string_view path;        // "mirror create"
  std::string_view positional;  // "NAME", "[NAME]" if it may be left out; empty: none
  std::string_view summary;
  std::vector<Option> options;
  std::string_view example;
  Run run = nullptr;
};

struct Arguments {
  const Command* command = nullptr;
  std::string positional;
  std::map<std::string, std::vector<std::string>, std::less<>> options;

  bool flag(std::string_view name) const { return options.contains(name); }
  // The last one given.
  std::optional<std::string> text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<std::string> all(std::string_view name) const;
  // Values separated by commas, of all occurrences; blanks around them and empty ones dropped.
  std::vector<std::string> list(std::string_view name) const;
  // Throws Failure(usage) unless it is a whole number within the limits.
  std::int64_t number(std::string_view name, std::int64_t fallback, std::int64_t min,
                      std::int64_t max) const;
  // `key=value` of every occurrence; the later wins.
  std::map<std::string, std::string> pairs(std::string_view name) const;
};

// What the command line asks for: help (then `help` is the text) or a command.
struct Invocation {
  std::optional<std::string> help;
  Arguments arguments;
};

// Throws Failure(usage). `words` is the command line without the program's name.
Invocation parse(std::span<const Command> commands, std::span<const std::string> words);

// All commands, a line each; or those that begin with `group`.
std::string describe_commands(std::span<const Command> commands, std::string_view group = {});
std::string describe_command(const Command& command);

}  // namespace tools
