// Lets one change of the catalog at a time through. Shard 0 only.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <utility>

#include "broker/wake_signal.h"

namespace broker {

class CatalogLock {
 public:
  class Guard {
   public:
    explicit Guard(CatalogLock& lock) : lock_(&lock) {}
    Guard(Guard&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (lock_ == nullptr) return;
      lock_->held_ = false;
      lock_->freed_.notify_all();
    }

   private:
    CatalogLock* lock_;
  };

  boost::asio::awaitable<Guard> take() {
    while (held_) co_await freed_.wait();
    held_ = true;
    co_return Guard(*this);
  }

 private:
  bool held_ = false;
  Signal freed_;
};

}  // namespace broker
