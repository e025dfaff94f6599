// Load for a Kafka broker, cheap enough not to be what is measured; prints one line of JSON, and of
// groups one for each phase.
//
//   kload produce|fetch|latency HOST PORT TOPIC [--partitions N] [--producers N] [--in-flight N]
//     [--records N] [--record-bytes N] [--codec NAME] [--acks N] [--seconds S] [--gb G] [--rate N]
//   kload echo-server | echo HOST PORT - [--record-bytes N] [--rate N] [--seconds S]
//   kload groups HOST PORT TOPIC [--partitions N] [--group NAME] [--protocol classic|consumer]
//     [--members N] [--beat-ms N] [--commit-ms N] [--seconds S]
//
// produce: closed loop, each producer with --in-flight requests of one batch of --records.
// fetch:   reads all partitions from 0 to their end, checks sums and offsets.
// latency: --rate records a second; time from the intended sending to the consumer.
// echo:    the same with an echo-server instead of a broker, which is the floor of it.
// groups:  so many members join, send heartbeats and commit for a while; one more comes and goes.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "tests/bench/kload_link.h"

int main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "echo-server") kload::serve_echo();
  if (count < 5) {
    std::fprintf(stderr,
                 "usage: kload produce|fetch|latency|echo|groups HOST PORT TOPIC [OPTIONS]\n");
    return 2;
  }
  const kload::Target target{words[2], static_cast<std::uint16_t>(std::atoi(words[3])), words[4]};
  kload::Options options;
  const auto number = [](int& into) {
    return [&into](const char* word) { into = std::atoi(word); };
  };
  const std::map<std::string, std::function<void(const char*)>> known{
      {"--partitions", number(options.partitions)},
      {"--producers", number(options.producers)},
      {"--in-flight", number(options.in_flight)},
      {"--records", number(options.records)},
      {"--record-bytes", number(options.record_bytes)},
      {"--acks", number(options.acks)},
      {"--rate", number(options.rate)},
      {"--members", number(options.members)},
      {"--beat-ms", number(options.beat_ms)},
      {"--commit-ms", number(options.commit_ms)},
      {"--group", [&](const char* word) { options.group = word; }},
      {"--protocol", [&](const char* word) { options.protocol = word; }},
      {"--codec", [&](const char* word) { options.codec = word; }},
      {"--seconds", [&](const char* word) { options.seconds = std::atof(word); }},
      {"--gb", [&](const char* word) { options.gb_max = std::atof(word); }},
  };
  for (int i = 5; i + 1 < count; i += 2) {
    const auto option = known.find(words[i]);
    if (option == known.end()) kload::die(std::string("unknown option ") + words[i]);
    option->second(words[i + 1]);
  }
  const std::string what = words[1];
  if (what == "produce")
    kload::produce(target, options);
  else if (what == "fetch")
    kload::fetch(target, options);
  else if (what == "latency")
    kload::latency(target, options);
  else if (what == "echo")
    kload::echo(target, options);
  else if (what == "groups")
    kload::groups(target, options);
  else
    kload::die("unknown command " + what);
  return 0;
}
