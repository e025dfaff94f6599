#include "tools/arguments.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "tools/address.h"
#include "tools/command_line.h"
#include "tools/failure.h"
#include "tools/topic_words.h"

namespace {

using tools::Failure;

const std::vector<tools::Command> table{
    {"mirror create",
     "NAME",
     "Creates.",
     {{"source", "HOST:PORT", "Where from.", true},
      {"topics", "REGEX[,…]", "What.", true, true},
      {"config", "KEY=VALUE", "Settings.", false, true},
      {"timeout", "SECONDS", "How long."},
      {"wait", "", "Waits."}},
     "calque mirror create m --source a:1 --topics t"},
    {"mirror describe", "[NAME]", "Describes.", {}, "calque mirror describe"},
    {"verify", "", "Compares.", {}, "calque verify"},
};

tools::Arguments read(const std::vector<std::string>& words) {
  return tools::parse(table, words).arguments;
}

// The sentence of the Failure(usage) that these words end in.
std::string refusal(const std::vector<std::string>& words) {
  try {
    tools::parse(table, words);
  } catch (const Failure& failure) {
    CHECK(failure.code() == tools::ExitCode::usage);
    return failure.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("options are read in every order and form", "[tools]") {
  const auto arguments = read({"mirror", "create", "--source=a:1", "m1", "--topics", "x, y",
                               "--wait", "--topics", "z", "--config", "a=1", "--config", "a=2=3"});
  CHECK(arguments.command->path == "mirror create");
  CHECK(arguments.positional == "m1");
  CHECK(arguments.text("source") == "a:1");
  CHECK(arguments.list("topics") == std::vector<std::string>{"x", "y", "z"});
  CHECK(arguments.flag("wait"));
  CHECK_FALSE(arguments.flag("timeout"));
  CHECK(arguments.pairs("config") == std::map<std::string, std::string>{{"a", "2=3"}});
  CHECK(arguments.number("timeout", 7, 1, 10) == 7);
  CHECK(arguments.text("timeout", "none") == "none");
}

TEST_CASE("an optional name may be left out", "[tools]") {
  CHECK(read({"mirror", "describe"}).positional.empty());
  CHECK(read({"mirror", "describe", "m"}).positional == "m");
  CHECK(read({"mirror", "describe", "--", "--odd"}).positional == "--odd");
}

TEST_CASE("each wrong command line gets a sentence that says what to do", "[tools]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal({}), Contains("calque --help"));
  CHECK_THAT(refusal({"mirrow", "create"}), Contains("did you mean 'mirror'"));
  CHECK_THAT(refusal({"mirror"}), Contains("'calque mirror --help'"));
  CHECK_THAT(refusal({"mirror", "creat", "m"}), Contains("did you mean 'mirror create'"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--sorce", "a:1"}),
             Contains("did you mean --source?"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--topics", "t"}), Contains("needs --source"));
  CHECK_THAT(refusal({"mirror", "create", "--source", "a:1", "--topics", "t"}),
             Contains("needs NAME"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--source"}), Contains("--source needs a value"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--source", "--topics", "t"}),
             Contains("--source needs a value"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--source", "a:1", "--source", "b:1"}),
             Contains("only once"));
  CHECK_THAT(refusal({"mirror", "create", "m", "--wait=yes"}), Contains("takes no value"));
  CHECK_THAT(refusal({"mirror", "create", "m", "n"}), Contains("one argument too many"));
  CHECK_THAT(refusal({"mirror", "create", "-w"}), Contains("two dashes"));
  CHECK_THAT(refusal({"verify", "x"}), Contains("one argument too many"));
}

TEST_CASE("values that do not fit are refused", "[tools]") {
  const auto with = [](const char* option, const char* value) {
    return read({"mirror", "create", "m", "--source", "a:1", "--topics", "t", option, value});
  };
  for (const char* bad : {"x", "1x", "", "0", "99999999999999999999"}) {
    if (*bad == '\0') continue;
    CHECK_THROWS_AS(with("--timeout", bad).number("timeout", 1, 1, 60), Failure);
  }
  CHECK(with("--timeout", "60").number("timeout", 1, 1, 60) == 60);
  CHECK_THROWS_AS(with("--config", "novalue").pairs("config"), Failure);
  CHECK_THROWS_AS(with("--config", "=x").pairs("config"), Failure);
}

TEST_CASE("help is as specific as the words", "[tools]") {
  const auto help = [](const std::vector<std::string>& words) {
    return tools::parse(table, words).help.value_or("no help");
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(help({"--help"}), Contains("verify"));
  CHECK_THAT(help({"mirror", "-h"}), Contains("mirror create") && !Contains("verify"));
  CHECK_THAT(help({"mirror", "create", "--help"}), Contains("--source HOST:PORT") &&
                                                       Contains("Required.") &&
                                                       Contains("May be repeated."));
  CHECK_THAT(help({"help", "verify"}), Contains("Compares."));
  // Help wins over what is missing, and data after "--" is no request for it.
  CHECK_THAT(help({"mirror", "create", "--source", "--help"}), Contains("Creates."));
  CHECK(help({"mirror", "describe", "--", "--help"}) == "no help");
}

TEST_CASE("every command has an example that its own table accepts", "[tools]") {
  for (const tools::Command& command : tools::commands()) {
    INFO(command.path);
    CHECK(command.run != nullptr);
    std::vector<std::string> words;
    std::istringstream stream{std::string(command.example)};
    for (std::string word; stream >> word;) words.push_back(word);
    REQUIRE(words[0] == "calque");
    words.erase(words.begin());
    const auto invocation = tools::parse(tools::commands(), words);
    CHECK(invocation.arguments.command == &command);
  }
}

TEST_CASE("addresses", "[tools]") {
  const auto list = tools::parse_addresses("a:1, [::1]:9092,10.0.0.1:65535", "source");
  REQUIRE(list.size() == 3);
  CHECK(list[0] == tools::Address{"a", 1});
  CHECK(list[1] == tools::Address{"::1", 9092});
  CHECK(list[1].to_string() == "[::1]:9092");
  CHECK(list[2].to_string() == "10.0.0.1:65535");
  for (const char* bad :
       {"", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "::1:9092", "a:1,", "[]:1"})
    CHECK_THROWS_AS(tools::parse_addresses(bad, "source"), Failure);
}

TEST_CASE("names and patterns are told apart", "[tools]") {
  const auto words = tools::split_topic_words({"orders", "a.b_c-d", "orders.*", "x|y", ".."});
  CHECK(words.names == std::vector<std::string>{"orders", "a.b_c-d"});
  CHECK(words.patterns == std::vector<std::string>{"orders.*", "x|y", ".."});
}

TEST_CASE("the exit code tells what went wrong", "[tools]") {
  std::ostringstream out, err;
  tools::Output output{out, err};
  const auto code = [&](std::vector<std::string> words) { return tools::run(words, output); };
  CHECK(code({"--version"}) == 0);
  CHECK(out.str() == "calque " CALQUE_VERSION "\n");
  CHECK(code({"--help"}) == 0);
  CHECK(code({"nothing"}) == 2);
  CHECK(err.str().starts_with("calque: "));
  CHECK(code({"dump-log", "/nowhere/00000000000000000000.log"}) == 1);
  CHECK(code({"dump-log", "/nowhere/file"}) == 2);
  // Port 1 of the loopback address: nobody listens there.
  CHECK(code({"topic", "list", "--bootstrap-server", "127.0.0.1:1"}) == 3);
  CHECK(err.str().find("cannot reach 127.0.0.1:1: connection refused; is the broker running?") !=
        std::string::npos);
}
