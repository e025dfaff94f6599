// A number of bytes that may be in use at once, on one shard. Who must wait is served in order of
// asking, so that a large request is not starved by small ones.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "protocol/base/clock.h"

namespace broker {

class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t bytes) : total_(bytes), free_(bytes) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // Gives its bytes back when destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Share() { release(); }
    // Whether it holds any.
    explicit operator bool() const { return budget_ != nullptr; }
    void release() {
      if (budget_ != nullptr) std::exchange(budget_, nullptr)->give_back(bytes_);
    }

   private:
    friend class ByteBudget;
    Share(ByteBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
    ByteBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  // A request larger than the whole budget gets all of it, alone.
  boost::asio::awaitable<Share> take(std::uint64_t bytes);
  // Nothing when they are not free, or others wait for some.
  Share try_take(std::uint64_t bytes);
  std::uint64_t free_bytes() const { return free_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiter {
    explicit Waiter(boost::asio::any_io_executor executor, std::uint64_t wanted)
        : granted(executor, base::Clock::time_point::max()), bytes(wanted) {}
    base::Timer granted;
    std::uint64_t bytes;
    bool done = false;
  };
  void give_back(std::uint64_t bytes);

  std::uint64_t total_;
  std::uint64_t free_;
  std::list<Waiter*> waiting_;
};

}  // namespace broker
