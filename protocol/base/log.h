// Logging: one spdlog logger per module, all writing to the sink that start_logging() set up.
// Before that they write to standard error. State changes at info, peers' faults at warn, ours at
// error; never payload, never secrets.
#pragma once
#include <spdlog/logger.h>

#include <memory>
#include <string>

namespace base {

// The module's logger, made at first use. Thread-safe.
spdlog::logger& logger(const char* module);

// Asynchronous, bounded queue; when it is full the oldest lines are dropped and counted.
void start_logging(const std::string& level);
// Writes out what is queued. Call before the process ends.
void stop_logging();

}  // namespace base
