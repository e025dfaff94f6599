#include "broker/serve.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "broker/broker.h"
#include "protocol/base/log.h"
#include "storage/file.h"

namespace broker {
namespace {

int fail(const std::string& sentence) {
  fmt::print(stderr, "calque: {}\n", sentence);
  return 1;
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

// Threads inherit the mask, so only sigwait() below sees these two.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Connections and open segments are a descriptor each, and a login shell allows 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    base::logger("server").warn("the limit of open files stays low: raise it with ulimit -n");
}

std::string ready_line(Broker& broker, std::chrono::milliseconds took) {
  std::string addresses;
  for (const Endpoint& one : broker.config().listeners()) {
    const Endpoint& told = broker.advertised(one.listener);
    addresses += fmt::format("{}{}://{}:{}", addresses.empty() ? "" : ",", told.listener, told.host,
                             told.port);
  }
  return fmt::format("calque {} ready at {}: node {}, cluster {}, {} topics, {} shards, {} ms",
                     CALQUE_VERSION, addresses, broker.node_id(), broker.cluster_id(),
                     broker.catalog().snapshot()->topics().size(), broker.shard_count(),
                     took.count());
}

}  // namespace

int serve(const std::string& properties_file, const std::vector<std::string>& overrides) {
  const auto began = std::chrono::steady_clock::now();
  std::ifstream file(properties_file, std::ios::binary);
  if (!file)
    return fail(fmt::format("{} cannot be read: name the server.properties to serve with",
                            properties_file));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::optional<Config> config;
  try {
    config = Config::load(text, overrides, environment());
  } catch (const ConfigError& e) {
    return fail(fmt::format("{}: {}", properties_file, e.what()));
  }
  const sigset_t signals = block_stop_signals();
  base::start_logging(config->text("calque.log.level"));
  for (const std::string& one : config->warnings())
    base::logger("config").warn("{}: {}", properties_file, one);

  raise_descriptor_limit();
  int code = 0;
  try {
    Broker broker(std::move(*config), storage::posix_file_system());
    if (const auto problem = broker.start()) {
      code = fail(*problem);
    } else {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - began);
      fmt::print("{}\n", ready_line(broker, took));
      std::fflush(stdout);
      int signal = 0;
      sigwait(&signals, &signal);
      base::logger("broker").info("stopping on signal {}", signal);
      // A second one ends the process at once.
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    }
    broker.stop();
  } catch (const std::exception& e) {
    code = fail(e.what());
  }
  base::stop_logging();
  return code;
}

}  // namespace broker
