#include "broker/groups/timer_queue.h"

#include <catch2/catch.hpp>

using broker::groups::TimerKey;
using broker::groups::TimerQueue;

namespace {
TimerKey member(const char* name) {
  return {TimerKey::Kind::member, "g", name};
}
}  // namespace

TEST_CASE("timers are taken in the order in which they are due") {
  TimerQueue queue;
  CHECK(!queue.next_deadline_ms());
  queue.set(member("b"), 20);
  queue.set(member("a"), 30);
  queue.set({TimerKey::Kind::join, "g", {}}, 10);
  CHECK(queue.next_deadline_ms() == 10);
  CHECK(!queue.take_due(9));
  CHECK(queue.take_due(25)->kind == TimerKey::Kind::join);
  CHECK(queue.take_due(25) == member("b"));
  CHECK(!queue.take_due(25));
  CHECK(queue.take_due(30) == member("a"));
  CHECK(queue.size() == 0);
}

TEST_CASE("a timer has one deadline, the last that was set") {
  TimerQueue queue;
  queue.set(member("a"), 10);
  queue.set(member("a"), 50);
  CHECK(queue.size() == 1);
  CHECK(!queue.take_due(49));
  queue.cancel(member("a"));
  CHECK(!queue.take_due(1000));
  CHECK(!queue.has(member("a")));
}
