#include "protocol/base/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
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
std::map<std::string, spdlog::level::level_enum> own_levels;
// References to loggers are kept by their users, so a replaced one lives on.
std::vector<std::shared_ptr<spdlog::logger>> retired;

constexpr std::string_view root = "root";
constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 7> level_names = {
    {{"TRACE", spdlog::level::trace},
     {"DEBUG", spdlog::level::debug},
     {"INFO", spdlog::level::info},
     {"WARN", spdlog::level::warn},
     {"ERROR", spdlog::level::err},
     {"FATAL", spdlog::level::critical},
     {"OFF", spdlog::level::off}}};

std::string name_of(spdlog::level::level_enum level) {
  for (const auto& [name, one] : level_names)
    if (one == level) return std::string(name);
  return "OFF";
}

spdlog::level::level_enum level_of(const std::string& module) {
  const auto own = own_levels.find(module);
  return own == own_levels.end() ? level_now : own->second;
}

std::shared_ptr<spdlog::logger> make(const std::string& module) {
  std::shared_ptr<spdlog::logger> made;
  if (pool)
    made = std::make_shared<spdlog::async_logger>(module, the_sink(), pool,
                                                  spdlog::async_overflow_policy::overrun_oldest);
  else
    made = std::make_shared<spdlog::logger>(module, the_sink());
  made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l [%n] %v");
  made->set_level(level_of(module));
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

std::map<std::string, std::string> logger_levels() {
  std::lock_guard lock(loggers_mutex);
  std::map<std::string, std::string> levels = {{std::string(root), name_of(level_now)}};
  for (const auto& [module, one] : loggers()) levels[module] = name_of(level_of(module));
  return levels;
}

bool set_logger_level(const std::string& module, const std::optional<std::string>& level) {
  std::lock_guard lock(loggers_mutex);
  if (module != root && !loggers().contains(module)) return false;
  const auto found = std::ranges::find_if(
      level_names, [&](const auto& one) { return level && one.first == *level; });
  if (level && found == level_names.end()) return false;
  if (module == root && !level) return false;
  if (module == root)
    level_now = found->second;
  else if (level)
    own_levels[module] = found->second;
  else
    own_levels.erase(module);
  for (auto& [name, one] : loggers())
    if (one) one->set_level(level_of(name));
  return true;
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
