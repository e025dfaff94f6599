#include "protocol/base/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace base {
namespace {

constexpr std::size_t queue_lines_max = 8192;

std::mutex loggers_mutex;
std::map<std::string, std::shared_ptr<spdlog::logger>>& loggers() {
  static std::map<std::string, std::shared_ptr<spdlog::logger>> all;
  return all;
}
std::shared_ptr<spdlog::sinks::sink> the_sink() {
  static auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return sink;
}
std::shared_ptr<spdlog::details::thread_pool> pool;
spdlog::level::level_enum level_now = spdlog::level::warn;
// References to loggers are kept by their users, so a replaced one lives on.
std::vector<std::shared_ptr<spdlog::logger>> retired;

std::shared_ptr<spdlog::logger> make(const std::string& module) {
  std::shared_ptr<spdlog::logger> made;
  if (pool)
    made = std::make_shared<spdlog::async_logger>(module, the_sink(), pool,
                                                  spdlog::async_overflow_policy::overrun_oldest);
  else
    made = std::make_shared<spdlog::logger>(module, the_sink());
  made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l [%n] %v");
  made->set_level(level_now);
  made->flush_on(spdlog::level::warn);
  return made;
}

}  // namespace

spdlog::logger& logger(const char* module) {
  std::lock_guard lock(loggers_mutex);
  auto& slot = loggers()[module];
  if (!slot) slot = make(module);
  return *slot;
}

void start_logging(const std::string& level) {
  std::lock_guard lock(loggers_mutex);
  pool = std::make_shared<spdlog::details::thread_pool>(queue_lines_max, 1);
  level_now = spdlog::level::from_str(level);
  for (auto& [name, one] : loggers()) retired.push_back(std::exchange(one, nullptr));
}

void stop_logging() {
  std::lock_guard lock(loggers_mutex);
  for (auto& [name, one] : loggers())
    if (one) {
      one->flush();
      retired.push_back(std::exchange(one, nullptr));
    }
  pool.reset();  // joins the writer, which empties the queue first
}

}  // namespace base
