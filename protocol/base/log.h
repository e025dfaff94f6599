// Logging: one spdlog logger per module, all writing to the sink that start_logging() set up.
// Before that they write to standard error. State changes at info, peers' faults at warn, ours at
// error; never payload, never secrets.
#pragma once
#include <spdlog/logger.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace base {

// The module's logger, made at first use. Thread-safe.
spdlog::logger& logger(const char* module);

// Asynchronous, bounded queue; when it is full the oldest lines are dropped and counted.
void start_logging(const std::string& level);
// Writes out what is queued. Call before the process ends.
void stop_logging();

// The levels that hold now by module, and under "root" the one of modules without an own one.
// Names are Kafka's: TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF.
std::map<std::string, std::string> logger_levels();
// Without a level the module goes back to that of "root". False: no such module, no such level, or
// "root" without one.
bool set_logger_level(const std::string& module, const std::optional<std::string>& level);

}  // namespace base
