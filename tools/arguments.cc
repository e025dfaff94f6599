#include "tools/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "tools/failure.h"

namespace tools {

namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Number of single-character edits between two words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// The candidate that was probably meant, or nothing when none is near.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& all) {
  std::optional<std::string> best;
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : all) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string help_hint(std::string_view path) {
  return path.empty() ? "calque --help" : fmt::format("calque {} --help", path);
}

[[noreturn]] void usage(const std::string& sentence) {
  throw Failure(ExitCode::usage, sentence);
}

bool is_group(std::span<const Command> commands, std::string_view word) {
  const std::string prefix = std::string(word) + " ";
  return std::ranges::any_of(commands,
                             [&](const Command& c) { return c.path.starts_with(prefix); });
}

[[noreturn]] void unknown_command(std::span<const Command> commands, std::string_view group,
                                  const std::string& path) {
  std::vector<std::string> known;
  for (const Command& c : commands) {
    const std::string whole(c.path);
    known.push_back(group.empty() ? whole.substr(0, whole.find(' ')) : whole);
  }
  if (const auto meant = nearest(path, known))
    usage(fmt::format("there is no command '{}'; did you mean '{}'? 'calque --help' lists all",
                      path, *meant));
  usage(fmt::format("there is no command '{}'; '{}' lists those that there are", path,
                    help_hint(group)));
}

// Consumes the words of the command's path.
const Command& find_command(std::span<const Command> commands,
                            std::span<const std::string>& words) {
  std::string path = words[0];
  std::size_t used = 1;
  std::string group;
  if (is_group(commands, path)) {
    group = path;
    if (words.size() < 2 || words[1].starts_with("-"))
      usage(fmt::format("'calque {}' needs a command after it; '{}' lists them", group,
                        help_hint(group)));
    path += " " + words[1];
    used = 2;
  }
  const auto found = std::ranges::find(commands, path, &Command::path);
  if (found == commands.end()) unknown_command(commands, group, path);
  words = words.subspan(used);
  return *found;
}

const Option& find_option(const Command& command, std::string_view name) {
  const auto found = std::ranges::find(command.options, name, &Option::name);
  if (found != command.options.end()) return *found;
  std::vector<std::string> known;
  for (const Option& o : command.options) known.emplace_back(o.name);
  if (const auto meant = nearest(name, known))
    usage(fmt::format("'calque {}' has no option --{}; did you mean --{}?", command.path, name,
                      *meant));
  usage(fmt::format("'calque {}' has no option --{}; '{}' lists those that it has", command.path,
                    name, help_hint(command.path)));
}

void take_option(const Command& command, std::span<const std::string> words, std::size_t& at,
                 Arguments& into) {
  const std::string_view word = std::string_view(words[at]).substr(2);
  const auto equals = word.find('=');
  const Option& option = find_option(command, word.substr(0, equals));
  auto& values = into.options[std::string(option.name)];
  if (!values.empty() && !option.repeated)
    usage(fmt::format("--{} may be given only once", option.name));
  if (option.value.empty()) {
    if (equals != std::string_view::npos)
      usage(fmt::format("--{} takes no value; leave out '{}'", option.name, word.substr(equals)));
    values.emplace_back();
    return;
  }
  if (equals != std::string_view::npos) {
    values.emplace_back(word.substr(equals + 1));
  } else {
    if (at + 1 == words.size() || words[at + 1].starts_with("--"))
      usage(fmt::format("--{} needs a value: --{} {}", option.name, option.name, option.value));
    values.push_back(words[++at]);
  }
  if (values.back().empty())
    usage(fmt::format("--{} needs a value: --{} {}", option.name, option.name, option.value));
}

void check_complete(const Command& command, const Arguments& arguments) {
  const bool optional = command.positional.starts_with("[");
  if (!command.positional.empty() && !optional && arguments.positional.empty())
    usage(fmt::format("'calque {}' needs {}; example: {}", command.path, command.positional,
                      command.example));
  for (const Option& o : command.options)
    if (o.required && !arguments.flag(o.name))
      usage(fmt::format("'calque {}' needs --{} {}; example: {}", command.path, o.name, o.value,
                        command.example));
}

Arguments read_arguments(const Command& command, std::span<const std::string> words) {
  Arguments result;
  result.command = &command;
  bool options_end = false;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!options_end && word == "--") {
      options_end = true;
    } else if (!options_end && word.starts_with("--")) {
      take_option(command, words, at, result);
    } else if (!options_end && word.size() > 1 && word[0] == '-') {
      usage(fmt::format(
          "options of calque are written with two dashes, so '{}' is not one; '{}' lists them",
          word, help_hint(command.path)));
    } else if (command.positional.empty() || !result.positional.empty()) {
      usage(fmt::format("'{}' is one argument too many for 'calque {}'; example: {}", word,
                        command.path, command.example));
    } else if (word.empty()) {
      usage(fmt::format("'calque {}' needs {} and got an empty one", command.path,
                        command.positional));
    } else {
      result.positional = word;
    }
  }
  check_complete(command, result);
  return result;
}

bool is_help(std::string_view word) {
  return word == "--help" || word == "-h";
}

// The text that `--help` anywhere on the command line asks for: as specific as the words allow.
std::string help_text(std::span<const Command> commands, std::span<const std::string> words) {
  std::vector<std::string> path;
  for (const std::string& word : words) {
    if (word.starts_with("-")) break;
    path.push_back(word);
  }
  if (path.empty()) return describe_commands(commands);
  if (is_group(commands, path[0]) && path.size() == 1) return describe_commands(commands, path[0]);
  std::span<const std::string> rest(path);
  return describe_command(find_command(commands, rest));
}

}  // namespace

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second.back();
}

std::string Arguments::text(std::string_view name, std::string_view fallback) const {
  return text(name).value_or(std::string(fallback));
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  std::vector<std::string> result;
  for (const std::string& value : all(name)) {
    std::string_view rest = value;
    while (true) {
      const auto comma = rest.find(',');
      if (const auto item = trim(rest.substr(0, comma)); !item.empty()) result.emplace_back(item);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return result;
}

std::int64_t Arguments::number(std::string_view name, std::int64_t fallback, std::int64_t min,
                               std::int64_t max) const {
  const auto given = text(name);
  if (!given) return fallback;
  std::int64_t value = 0;
  const char* const end = given->data() + given->size();
  const auto [stop, error] = std::from_chars(given->data(), end, value);
  if (error != std::errc() || stop != end || value < min || value > max)
    usage(fmt::format("--{} needs a whole number from {} to {}, not '{}'", name, min, max, *given));
  return value;
}

std::map<std::string, std::string> Arguments::pairs(std::string_view name) const {
  std::map<std::string, std::string> result;
  for (const std::string& value : all(name)) {
    const auto equals = value.find('=');
    const std::string key(trim(std::string_view(value).substr(0, equals)));
    if (equals == std::string::npos || key.empty())
      usage(fmt::format("--{} needs KEY=VALUE, not '{}'", name, value));
    result.insert_or_assign(key, value.substr(equals + 1));
  }
  return result;
}

Invocation parse(std::span<const Command> commands, std::span<const std::string> words) {
  if (words.empty()) usage("a command is missing; 'calque --help' lists all, each with an example");
  // Whatever follows "--" is data, also when it looks like an option.
  const auto end = std::ranges::find(words, "--");
  const std::span<const std::string> before(words.begin(), end);
  Invocation result;
  if (words[0] == "help") {
    result.help = help_text(commands, words.subspan(1));
  } else if (std::ranges::any_of(before, is_help)) {
    result.help = help_text(commands, before);
  } else {
    const Command& command = find_command(commands, words);
    result.arguments = read_arguments(command, words);
  }
  return result;
}

std::string describe_commands(std::span<const Command> commands, std::string_view group) {
  std::string text = "usage: calque COMMAND [OPTIONS]\n\n";
  for (const Command& c : commands) {
    if (!group.empty() && !c.path.starts_with(std::string(group) + " ")) continue;
    const std::string head =
        c.positional.empty() ? std::string(c.path) : fmt::format("{} {}", c.path, c.positional);
    text += fmt::format("  {:<24} {}\n", head, c.summary);
  }
  text +=
      "\n'calque COMMAND --help' describes one with its options and an example.\n'calque "
      "--version' prints the version.\nExit codes: 0 done, 1 failed or different, 2 wrong usage, 3 "
      "broker not reached,\n4 --wait timed out, 130 interrupted.\n";
  return text;
}

std::string describe_command(const Command& command) {
  std::string text = fmt::format("usage: calque {}", command.path);
  if (!command.positional.empty()) text += fmt::format(" {}", command.positional);
  for (const Option& o : command.options) {
    if (!o.required) continue;
    text += fmt::format(" --{} {}", o.name, o.value);
  }
  text += fmt::format(" [OPTIONS]\n\n{}\n\nOptions:\n", command.summary);
  for (const Option& o : command.options) {
    const std::string head =
        o.value.empty() ? fmt::format("--{}", o.name) : fmt::format("--{} {}", o.name, o.value);
    text += fmt::format("  {:<32} {}{}{}\n", head, o.sentence, o.required ? " Required." : "",
                        o.repeated ? " May be repeated." : "");
  }
  text += fmt::format("  {:<32} {}\n\nExample:\n  {}\n", "--help", "This text.", command.example);
  return text;
}

}  // namespace tools
