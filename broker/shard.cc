#include "broker/shard.h"

#include <boost/asio/post.hpp>

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "broker/bounds.h"
#include "broker/fetch_sessions.h"
#include "broker/fetch_wait.h"
#include "broker/partition.h"
#include "protocol/base/check.h"
#include "protocol/base/log.h"

namespace broker {
namespace {

thread_local Shard* current_shard = nullptr;

void name_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.c_str());
}

// Handlers that throw are bugs, and the shard's other work must not end with them.
void run_for_ever(boost::asio::io_context& io) {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception& e) {
      base::logger("broker").error("an exception reached the event loop: {}", e.what());
    }
  }
}

}  // namespace

Shard::Shard(std::size_t index, std::uint64_t request_bytes_max)
    : index_(index),
      budget_(request_bytes_max),
      kept_buffers_(std::min(request_bytes_max, buffers_kept_max)),
      io_work_(io_.get_executor()),
      disk_work_(disk_.get_executor()) {}

Shard::~Shard() {
  stop();
}

Shard* Shard::current() {
  return current_shard;
}

void Shard::start() {
  CHECK(!io_thread_.joinable());
  for (std::size_t i = 0; i < disk_threads; ++i)
    disk_threads_[i] = std::thread([this, i] {
      name_thread("disk-" + std::to_string(index_) + "." + std::to_string(i));
      run_for_ever(disk_);
    });
  io_thread_ = std::thread([this] {
    current_shard = this;
    name_thread("shard-" + std::to_string(index_));
    run_for_ever(io_);
  });
}

void Shard::stop() {
  CHECK(!is_current());
  io_.stop();
  if (io_thread_.joinable()) io_thread_.join();
  disk_.stop();
  for (std::thread& one : disk_threads_)
    if (one.joinable()) one.join();
}

std::shared_ptr<Partition> Shard::find(const base::TopicPartition& id) const {
  const auto at = partitions_.find(id);
  return at == partitions_.end() ? nullptr : at->second;
}

void Shard::add(std::shared_ptr<Partition> partition) {
  const base::TopicPartition id = partition->id();
  partitions_.insert_or_assign(id, std::move(partition));
}

void Shard::remove(const base::TopicPartition& id) {
  partitions_.erase(id);
}

void Shard::set_fetch_sessions(std::unique_ptr<FetchSessions> sessions) {
  fetch_sessions_ = std::move(sessions);
}

void Shard::add_sleeper(std::shared_ptr<FetchWaiter> waiter) {
  if (stopping_) waiter->wake();
  sleepers_.insert(std::move(waiter));
}

void Shard::remove_sleeper(const std::shared_ptr<FetchWaiter>& waiter) {
  sleepers_.erase(waiter);
}

void Shard::begin_stop() {
  stopping_ = true;
  for (const auto& one : sleepers_) one->wake();
  stop_signal_.notify_all();
}

boost::asio::awaitable<void> Shard::readers_first() {
  if (std::exchange(reader_is_ready_, false))
    co_await boost::asio::post(io_.get_executor(), boost::asio::use_awaitable);
}

// Each post gets behind all that is ready, the look at the sockets among it: the first round brings
// what came, the second what follows from that.
boost::asio::awaitable<void> Shard::others_first() {
  for (int round = 0; round < 3; ++round)
    co_await boost::asio::post(io_.get_executor(), boost::asio::use_awaitable);
}

}  // namespace broker
