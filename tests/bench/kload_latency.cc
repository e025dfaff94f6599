// Open loops: a request is sent when it is due, whether or not earlier ones were answered.
//
// One thread does everything and does not sleep from a while before a request is due until its
// records have come. Else a timer that is late and a CPU that has to wake up would be in each
// figure, which on a virtual machine is more than a broker takes. It sleeps when nothing is on its
// way, for a CPU that is never idle gets more of the host's interruptions.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/messages/produce.gen.h"
#include "tests/bench/kload_fetch.h"

namespace kload {
namespace {

constexpr std::chrono::seconds silence_max{30};
constexpr std::chrono::microseconds awake_before{150};

std::int64_t ns_of(Clock::time_point when) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

// When the requests of a run are due, at most one each millisecond.
class Schedule {
 public:
  explicit Schedule(const Options& options)
      : ticks_a_second_(std::min(options.rate, 1000)),
        records_(std::max(1, options.rate / ticks_a_second_)),
        ticks_(static_cast<std::int64_t>(options.seconds * ticks_a_second_)) {}

  std::int64_t ticks() const { return ticks_; }
  int records() const { return records_; }
  Clock::time_point due(std::int64_t tick) const {
    return began_ + std::chrono::nanoseconds(1'000'000'000 / ticks_a_second_ * tick);
  }

 private:
  int ticks_a_second_;
  int records_;
  std::int64_t ticks_;
  Clock::time_point began_ = Clock::now() + std::chrono::milliseconds(200);
};

enum class Progress { waiting, quiet, done };

// Sends what `make` made for a tick when it is due; asks `receive` for progress in between, told
// how many ticks have been sent.
template <class Make, class Receive>
void run(Link& link, const Schedule& schedule, Make make, Receive receive) {
  prctl(PR_SET_TIMERSLACK, 1);
  std::int64_t tick = 0;
  base::Buffer next = make(tick);
  for (;;) {
    const Progress progress = receive(tick);
    if (progress == Progress::done) return;
    const auto now = Clock::now();
    if (now > schedule.due(schedule.ticks()) + silence_max) die("answers are missing");
    if (tick == schedule.ticks()) continue;
    const auto due = schedule.due(tick);
    if (now >= due) {
      link.send(next);
      if (++tick < schedule.ticks()) next = make(tick);
    } else if (progress == Progress::quiet && now + awake_before < due) {
      std::this_thread::sleep_until(due - awake_before);
    }
  }
}

base::Buffer timed_frame(const Target& target, const Options& options, int records,
                         Clock::time_point intended) {
  const std::int64_t intended_ns = ns_of(intended);
  protocol::BatchBuilder builder({});
  base::Buffer value(static_cast<std::size_t>(options.record_bytes));
  std::memcpy(value.data(), &intended_ns, sizeof intended_ns);
  for (int i = 0; i < records; ++i)
    builder.add(1'700'000'000'000, std::nullopt, base::Bytes(value));
  const base::Buffer batch = std::move(builder).build();
  protocol::ProduceRequest request;
  request.acks = static_cast<std::int16_t>(options.acks);
  request.timeout_ms = 30'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = target.topic;
  auto& data = topic.partition_data.emplace_back();
  data.records.null = false;
  data.records.bytes = batch;
  return frame(produce_version, request);
}

// All values of a batch hold it; that of the last record ends before its count of headers.
std::int64_t intended_ns_of(base::Bytes batch, const Options& options) {
  std::int64_t intended = 0;
  const std::size_t value = batch.size() - static_cast<std::size_t>(options.record_bytes) - 1;
  std::memcpy(&intended, batch.data() + value, sizeof intended);
  return intended;
}

void tell(std::vector<float>& latencies_ms) {
  const std::size_t records = latencies_ms.size();
  fmt::print(R"({{"records": {}, {}}})"
             "\n",
             records, percentiles(latencies_ms));
}

}  // namespace

void latency(const Target& target, const Options& options) {
  std::vector<Position> positions{{0, log_ends(target, 1)[0], INT64_MAX}};
  Link producer(target), consumer(target);
  const Schedule schedule(options);
  const std::int64_t wanted = schedule.ticks() * schedule.records();
  std::int64_t acknowledged = options.acks == 0 ? schedule.ticks() : 0;
  std::vector<float> latencies_ms;
  consumer.send(fetch_frame(target, positions, 500));
  const auto make = [&](std::int64_t tick) {
    return timed_frame(target, options, schedule.records(), schedule.due(tick));
  };
  const auto receive = [&](std::int64_t sent) {
    if (const auto answer = consumer.try_receive()) {
      const std::int64_t now_ns = ns_of(Clock::now());
      walk_fetched(*answer, positions, [&](const protocol::BatchInfo& info, base::Bytes batch) {
        const std::int64_t took_ns = now_ns - intended_ns_of(batch, options);
        const auto count = static_cast<std::size_t>(info.record_count.value_or(0));
        latencies_ms.insert(latencies_ms.end(), count,
                            static_cast<float>(static_cast<double>(took_ns) / 1e6));
      });
      consumer.send(fetch_frame(target, positions, 500));
    }
    if (producer.try_receive()) ++acknowledged;
    const auto came = static_cast<std::int64_t>(latencies_ms.size());
    if (came >= wanted && acknowledged == schedule.ticks()) return Progress::done;
    return came < wanted && came == sent * schedule.records() ? Progress::quiet : Progress::waiting;
  };
  run(producer, schedule, make, receive);
  if (static_cast<std::int64_t>(latencies_ms.size()) != wanted) die("there are too many records");
  tell(latencies_ms);
}

void echo(const Target& target, const Options& options) {
  Link link(target);
  const Schedule schedule(options);
  base::Buffer message(prefix_bytes +
                       static_cast<std::size_t>(schedule.records() * options.record_bytes));
  protocol::store_be<std::int32_t>(message.data(),
                                   static_cast<std::int32_t>(message.size() - prefix_bytes));
  std::vector<float> latencies_ms;
  std::int64_t came = 0;
  const auto receive = [&](std::int64_t sent) {
    if (link.try_receive()) {
      const auto took = Clock::now() - schedule.due(came++);
      latencies_ms.insert(latencies_ms.end(), static_cast<std::size_t>(schedule.records()),
                          std::chrono::duration<float, std::milli>(took).count());
    }
    if (came == schedule.ticks()) return Progress::done;
    return came == sent ? Progress::quiet : Progress::waiting;
  };
  run(link, schedule, [&](std::int64_t) { return message; }, receive);
  tell(latencies_ms);
}

}  // namespace kload
