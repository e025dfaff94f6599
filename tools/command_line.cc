#include "tools/command_line.h"

#include <algorithm>
#include <new>
#include <ostream>

#include "broker/config.h"
#include "broker/serve.h"
#include "tools/bootstrap.h"
#include "tools/dump.h"
#include "tools/failure.h"
#include "tools/group_commands.h"
#include "tools/mirror_commands.h"
#include "tools/sample.h"
#include "tools/topic_commands.h"
#include "tools/verify.h"

namespace tools {

namespace {

ExitCode serve(const Arguments& arguments, Output&) {
  for (const std::string& pair : arguments.all("override"))
    if (const auto equals = pair.find('='); equals == 0 || equals == std::string::npos)
      throw Failure(ExitCode::usage, "--override needs KEY=VALUE, not '" + pair + "'");
  return static_cast<ExitCode>(broker::serve(arguments.positional, arguments.all("override")));
}

std::vector<Command> own_commands() {
  return {
      {"serve",
       "FILE",
       "Runs the broker with the settings in FILE until SIGTERM or Ctrl-C.",
       {{"override", "KEY=VALUE", "A setting that counts instead of the one in FILE.", false,
         true}},
       "calque serve server.properties --override log.dirs=/var/lib/calque",
       serve},
      {"dump-log",
       "FILE",
       "Shows and checks a file of a partition directory.",
       {{"records", "", "Of a segment, also the records in its batches."},
        {"json", "", "One object a line."}},
       "calque dump-log data/orders-0/00000000000000000000.log --records",
       dump_log},
  };
}

std::string help_of(std::span<const std::string> words, std::string help) {
  if (std::ranges::find(words, "serve") != words.end())
    help += "\nSettings:\n" + broker::describe_settings();
  return help;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> table = own_commands();
    for (auto part : {mirror_commands(), topic_commands(), group_commands(), verify_commands(),
                      sample_commands()})
      table.insert(table.end(), part.begin(), part.end());
    return table;
  }();
  return all;
}

int run(std::span<const std::string> words, Output& output) {
  try {
    if (words.size() == 1 && words[0] == "--version") {
      output.out << "calque " << CALQUE_VERSION << '\n';
      return static_cast<int>(ExitCode::ok);
    }
    const Invocation invocation = parse(commands(), words);
    if (invocation.help) {
      output.out << help_of(words, *invocation.help);
      return static_cast<int>(ExitCode::ok);
    }
    const Arguments& arguments = invocation.arguments;
    const ExitCode code = arguments.command->run(arguments, output);
    output.out.flush();
    if (!output.out)
      throw Failure(ExitCode::failed,
                    "the output could not be written; look whether the disk is full or the reader "
                    "of the pipe ended");
    return static_cast<int>(code);
  } catch (const Failure& failure) {
    output.out.flush();
    output.err << "calque: " << failure.what() << '\n';
    return static_cast<int>(failure.code());
  } catch (const std::bad_alloc&) {
    output.err << "calque: out of memory; end other programs or give this one more\n";
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace tools
