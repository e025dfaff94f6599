#include <catch2/catch.hpp>

#include "mirror/retry.h"
#include "mirror/states.h"

using namespace mirror;

TEST_CASE("retry delays double from the first and stop at the cap") {
  CHECK(retry_delay_ms(100, 300'000, 1, 0) == 100);
  CHECK(retry_delay_ms(100, 300'000, 2, 0) == 200);
  CHECK(retry_delay_ms(100, 300'000, 12, 0) == 204'800);
  CHECK(retry_delay_ms(100, 300'000, 13, 0) == 300'000);
  CHECK(retry_delay_ms(100, 300'000, 2'000'000'000, 0) == 300'000);
}

TEST_CASE("the jitter is a fifth at most, both ways") {
  CHECK(retry_delay_ms(100, 300'000, 1, -200) == 80);
  CHECK(retry_delay_ms(100, 300'000, 1, 200) == 120);
  CHECK(retry_delay_ms(100, 300'000, 30, 200) == 360'000);
  CHECK(retry_delay_ms(100, 300'000, 30, -200) == 240'000);
}

TEST_CASE("settings at their edges neither overflow nor busy-loop") {
  CHECK(retry_delay_ms(1, 1, 5, -200) >= 1);
  CHECK(retry_delay_ms(0, 0, 5, 0) >= 1);
  CHECK(retry_delay_ms(500, 100, 1, 0) == 100);
  constexpr std::int64_t huge = INT64_MAX / 2;
  CHECK(retry_delay_ms(100, huge, INT32_MAX, 200) > huge);
}

TEST_CASE("an unreachable source is retried for ever, what could do harm never") {
  CHECK(retry_class(Failure::source_unreachable) == RetryClass::unbounded);
  CHECK(retry_class(Failure::source_behind) == RetryClass::unbounded);
  CHECK(retry_class(Failure::local_error) == RetryClass::unbounded);
  CHECK(retry_class(Failure::source_error) == RetryClass::bounded);
  CHECK(retry_class(Failure::corrupt_batch) == RetryClass::bounded);
  for (const Failure f : {Failure::mirror_loop, Failure::cluster_changed, Failure::topic_recreated,
                          Failure::topic_deleted, Failure::log_diverged, Failure::source_trimmed,
                          Failure::epoch_exhausted, Failure::unsupported})
    CHECK(retry_class(f) == RetryClass::never);
}

TEST_CASE("states have the KIP's numbers and names") {
  const std::pair<std::int8_t, std::string_view> expected[] = {
      {-1, "UNKNOWN"},  {0, "LOG_ALIGNMENT"}, {1, "EPOCH_FENCING"}, {2, "ULE_RECOVERY"},
      {3, "MIRRORING"}, {4, "PAUSING"},       {5, "PAUSED"},        {6, "STOPPING"},
      {7, "STOPPED"},   {8, "FAILED"}};
  for (const auto& [number, text] : expected) {
    const auto state = state_from_number(number);
    REQUIRE(state.has_value());
    CHECK(name(*state) == text);
    CHECK(static_cast<std::int8_t>(*state) == number);
  }
  CHECK_FALSE(state_from_number(9));
  CHECK_FALSE(state_from_number(16));
  CHECK_FALSE(state_from_number(-2));
}

// The KIP's table, one row a target (its section d.2), and our own edges behind it.
TEST_CASE("the table of legal transitions") {
  using enum MirrorState;
  constexpr MirrorState all[] = {unknown, log_alignment, epoch_fencing, ule_recovery, mirroring,
                                 pausing, paused,        stopping,      stopped,      failed};
  auto from = [&](MirrorState to) {
    std::string out;
    for (MirrorState s : all)
      if (s != to && legal_transition(s, to)) out += std::string(name(s)) + " ";
    return out;
  };
  CHECK(from(log_alignment) == "UNKNOWN PAUSED STOPPED FAILED ");
  CHECK(from(epoch_fencing) == "LOG_ALIGNMENT ULE_RECOVERY MIRRORING ");
  CHECK(from(ule_recovery) == "MIRRORING ");
  CHECK(from(mirroring) == "LOG_ALIGNMENT EPOCH_FENCING ULE_RECOVERY PAUSED FAILED ");
  CHECK(from(pausing) == "LOG_ALIGNMENT EPOCH_FENCING ULE_RECOVERY MIRRORING FAILED ");
  CHECK(from(paused) == "PAUSING ");
  CHECK(from(stopping) ==
        "UNKNOWN LOG_ALIGNMENT EPOCH_FENCING ULE_RECOVERY MIRRORING PAUSING PAUSED FAILED ");
  CHECK(from(stopped) == "STOPPING ");
  CHECK(from(unknown) == "STOPPED ");
  for (MirrorState s : all) CHECK(legal_transition(s, s));
}
