// What a shard does with work that blocks.
#include "broker/shard.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

namespace broker::test {
namespace {

template <class F>
auto run_on(Shard& shard, F f) {
  return boost::asio::co_spawn(shard.executor(), std::move(f), boost::asio::use_future).get();
}

}  // namespace

TEST_CASE("blocking work runs elsewhere and its result comes back to the shard") {
  Shard shard(0, 1 << 20);
  shard.start();
  bool elsewhere = false, back = false;
  const auto ask = [&]() -> boost::asio::awaitable<std::string> {
    auto work = [&] {
      elsewhere = Shard::current() == nullptr;
      return std::string("done");
    };
    const std::string result = co_await shard.on_disk(std::move(work));
    back = shard.is_current();
    co_return result;
  };
  CHECK(run_on(shard, ask) == "done");
  CHECK(elsewhere);
  CHECK(back);
  shard.stop();
}

TEST_CASE("what blocking work throws is thrown at who waits for it") {
  Shard shard(0, 1 << 20);
  shard.start();
  bool back = false;
  const auto ask = [&]() -> boost::asio::awaitable<std::string> {
    auto work = []() -> std::string { throw std::runtime_error("no memory"); };
    try {
      co_await shard.on_disk(std::move(work));
    } catch (const std::runtime_error& e) {
      back = shard.is_current();
      co_return e.what();
    }
    co_return "nothing";
  };
  CHECK(run_on(shard, ask) == "no memory");
  CHECK(back);
  shard.stop();
}

}  // namespace broker::test
