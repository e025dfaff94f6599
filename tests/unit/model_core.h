// What the models of coordinators have in common: the pure core, another that has heard of its
// records alone, and a clock.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "broker/groups/types.h"

namespace broker::test {

template <class Core>
class ModelCore {
 public:
  using Decision = decltype(std::declval<Core&>().loaded(groups::Now()));

  Core& state() { return *state_; }
  groups::Now now() const { return now_; }
  // Time goes by; what becomes due meanwhile happens when it is due.
  void pass(std::int64_t ms) {
    const std::int64_t until = now_.monotonic_ms + ms;
    for (;;) {
      const auto next = state_->next_deadline_ms();
      if (!next || *next > until) break;
      advance_to(std::max(*next, now_.monotonic_ms));
      auto decided = state_->expire(now_);
      REQUIRE(decided);
      carry_out(std::move(*decided));
    }
    advance_to(until);
  }
  void clean() { carry_out(state_->clean(now_)); }
  template <class Decided>
  auto run(Decided decided) {
    auto answer = std::move(decided.answer);
    carry_out(std::move(decided));
    return answer;
  }
  virtual void carry_out(Decision decision) = 0;

 protected:
  virtual ~ModelCore() = default;
  // As the log has it.
  virtual std::unique_ptr<Core> replayed() = 0;
  void load() {
    state_ = replayed();
    replica_ = replayed();
    carry_out(state_->loaded(now_));
  }

  std::unique_ptr<Core> state_, replica_;
  groups::Now now_{1'000, 1'700'000'000'000};

 private:
  void advance_to(std::int64_t monotonic_ms) {
    now_.wall_ms += monotonic_ms - now_.monotonic_ms;
    now_.monotonic_ms = monotonic_ms;
  }
};

}  // namespace broker::test
