// What a connection does with peers that do not play by the rules.
#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "broker/bounds.h"
#include "protocol/messages/metadata.gen.h"
#include "protocol/messages/produce.gen.h"
#include "tests/unit/broker/client.h"
#include "tests/unit/broker/locked_files.h"

namespace broker::test {
namespace {

bool still_serves(std::uint16_t port) {
  Client client(port);
  protocol::MetadataRequest asked;
  asked.topics.reset();
  return client.call<protocol::MetadataResponse>(1, asked).brokers.size() == 1;
}

// Resident memory of this process in KiB.
long resident_kib() {
  std::ifstream file("/proc/self/statm");
  long pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4;
}

base::Buffer with_size(std::int32_t size, std::string_view rest) {
  base::Buffer out(4);
  protocol::store_be<std::int32_t>(out.data(), size);
  const base::Bytes bytes = base::as_bytes(rest);
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

base::Buffer header(std::int16_t key, std::int16_t version) {
  base::Buffer out(12);
  protocol::store_be<std::int16_t>(out.data(), key);
  protocol::store_be<std::int16_t>(out.data() + 2, version);
  protocol::store_be<std::int32_t>(out.data() + 4, 7);
  protocol::store_be<std::int16_t>(out.data() + 8, 2);
  out[10] = std::byte{'m'};
  out[11] = std::byte{'e'};
  return out;
}

}  // namespace

TEST_CASE("what is not Kafka's protocol is closed at once, without memory (F06)") {
  Directory directory;
  Running broker(directory);
  REQUIRE(still_serves(broker.port()));
  const long before = resident_kib();
  for (const std::int32_t size : {0, -1, -2'147'483'647, 104'857'601, 2'147'483'647}) {
    Socket socket(broker.port());
    socket.send(with_size(size, "rest"));
    CHECK(socket.is_closed_by_peer());
  }
  for (const std::string_view text :
       {"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client says hello"}) {
    Socket socket(broker.port());
    socket.send(base::as_bytes(text));
    CHECK(socket.is_closed_by_peer());
  }
  CHECK(resident_kib() - before < 4096);
  CHECK(still_serves(broker.port()));
}

TEST_CASE("unknown APIs and versions, and bodies that do not parse, end the connection") {
  Directory directory;
  Running broker(directory);
  const auto closes = [&](base::Buffer request, std::string_view body) {
    const base::Bytes more = base::as_bytes(body);
    request.insert(request.end(), more.begin(), more.end());
    Socket socket(broker.port());
    REQUIRE(socket.send(framed(request)));
    return socket.is_closed_by_peer();
  };
  using namespace std::string_view_literals;
  CHECK(closes(header(200, 0), ""));
  CHECK(closes(header(-5, 0), ""));
  CHECK(closes(header(0, 1), "\0\1\0\0\1\0\0\0\0\0"sv));
  CHECK(closes(header(0, 99), ""));
  CHECK(closes(header(8, 5), ""));
  // An array that claims 2^31-1 elements (F01), in both encodings.
  const long before = resident_kib();
  CHECK(closes(header(3, 1), "\x7f\xff\xff\xff"sv));
  CHECK(closes(header(3, 9), "\0\xff\xff\xff\xff\x0f"sv));
  // Tagged fields by the billion (F02).
  CHECK(closes(header(18, 3), "\0\2a\2b\xff\xff\xff\xff\x0f"sv));
  CHECK(resident_kib() - before < 4096);
  // A header that ends in the middle.
  Socket socket(broker.port());
  REQUIRE(socket.send(with_size(3, "\0\3\0"sv)));
  CHECK(socket.is_closed_by_peer());
  CHECK(still_serves(broker.port()));
}

TEST_CASE("a peer that stops in the middle of a request holds up nobody else") {
  Directory directory;
  Running broker(directory);
  std::vector<std::unique_ptr<Socket>> stuck;
  for (int i = 0; i < 50; ++i) {
    stuck.push_back(std::make_unique<Socket>(broker.port()));
    REQUIRE(stuck.back()->send(with_size(1000, "only this")));
  }
  CHECK(still_serves(broker.port()));
  stuck.clear();
  CHECK(still_serves(broker.port()));
}

TEST_CASE("requests wait for their bytes, in order, and none is lost") {
  Directory directory;
  // Two shards share 4000 bytes: one large request at a time on each.
  Running broker(directory, {"queued.max.request.bytes=4000"});
  protocol::MetadataRequest asked;
  asked.topics.emplace();
  for (int i = 0; i < 60; ++i) asked.topics->emplace_back().name = std::string(30, 'n');
  const base::Buffer request = encode_request(1, asked);
  // Catch's macros are for one thread: clients connect here, the threads only count.
  std::vector<std::unique_ptr<Client>> clients;
  for (int c = 0; c < 8; ++c) clients.push_back(std::make_unique<Client>(broker.port()));
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (const auto& one : clients)
    threads.emplace_back([&request, &answered, client = one.get()] {
      for (int i = 0; i < 20; ++i)
        if (client->socket().send(request) && !client->receive().empty()) ++answered;
    });
  for (std::thread& one : threads) one.join();
  CHECK(answered == 160);
}

TEST_CASE("a slow sender's request is put together") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  protocol::MetadataRequest asked;
  asked.topics.reset();
  for (const std::byte one : encode_request(1, asked)) {
    REQUIRE(client.socket().send({&one, 1}));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(!client.receive().empty());
}

TEST_CASE("several requests sent at once are answered one after the other") {
  Directory directory;
  Running broker(directory);
  Client client(broker.port());
  protocol::MetadataRequest asked;
  asked.topics.reset();
  base::Buffer all;
  for (std::int32_t i = 0; i < 50; ++i) {
    const base::Buffer one = encode_request(1, asked, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  REQUIRE(client.socket().send(all));
  for (std::int32_t i = 0; i < 50; ++i) {
    const base::Buffer answer = client.receive();
    REQUIRE(answer.size() > 4);
    CHECK(protocol::load_be<std::int32_t>(answer.data()) == i);
  }
}

namespace {

base::Buffer produce(const std::string& topic, base::Bytes batch, std::int32_t correlation_id,
                     std::int16_t acks) {
  protocol::ProduceRequest request;
  request.acks = acks;
  request.timeout_ms = 10'000;
  auto& asked = request.topic_data.emplace_back();
  asked.name = topic;
  auto& data = asked.partition_data.emplace_back();
  data.records.bytes = batch;
  return encode_request(9, request, correlation_id);
}

base::Buffer produce_all(const std::string& topic, base::Bytes batch, std::int32_t correlation_id) {
  return produce(topic, batch, correlation_id, -1);
}

void add(base::Buffer& to, const base::Buffer& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// What a Produce request of one partition was answered.
struct Produced {
  std::int32_t correlation_id = -1;
  std::int16_t error = -1;
  std::int64_t base_offset = -1;
  bool operator==(const Produced&) const = default;
};

Produced receive_produced(Client& client) {
  const base::Buffer answer = client.receive();
  protocol::ResponseHeader header;
  base::Bytes body;
  protocol::ProduceResponse response;
  REQUIRE(protocol::decode(answer, protocol::ApiKey::produce, 9, header, body));
  REQUIRE(decode(body, 9, response));
  const auto& one = response.responses.at(0).partition_responses.at(0);
  return {header.correlation_id, one.error_code, one.base_offset};
}

}  // namespace

TEST_CASE("produce requests that come together are appended and answered in order") {
  Directory directory;
  Running broker(directory);
  for (const char* topic : {"a", "b", "c"}) broker.create(topic);
  const std::vector<std::string> topics = {"a", "b", "c", "none"};
  Client client(broker.port());
  const base::Buffer batch = batch_of({std::string(2'000, 'x')});
  const base::Buffer broken = [&batch] {
    base::Buffer copy = batch;
    copy.back() ^= std::byte{1};
    return copy;
  }();
  // More than are handled at once and than are read at once, answered or not, right or wrong.
  constexpr std::int32_t requests = 400;
  constexpr std::int16_t unknown_topic = 3, corrupt = 2;
  base::Buffer all;
  std::vector<Produced> expected;
  std::map<std::string, std::int64_t> ends;
  for (std::int32_t i = 0; i < requests; ++i) {
    const std::string& topic = topics[static_cast<std::size_t>(i * 7 % 4)];
    const bool good = i % 5 != 0 && topic != "none";
    const bool silent = good && i % 11 == 0;
    const std::int16_t acks = silent       ? std::int16_t{0}
                              : i % 3 == 0 ? std::int16_t{-1}
                                           : std::int16_t{1};
    add(all, produce(topic, i % 5 == 0 ? broken : batch, i, acks));
    if (topic == "none")
      expected.push_back({i, unknown_topic, -1});
    else if (!good)
      expected.push_back({i, corrupt, -1});
    else if (!silent)
      expected.push_back({i, 0, ends[topic]});
    if (good) ++ends[topic];
  }
  std::thread sender([&] { client.socket().send(all); });
  for (const Produced& one : expected) {
    const Produced got = receive_produced(client);
    CAPTURE(one.correlation_id);
    CHECK(got == one);
  }
  sender.join();
  CHECK(still_serves(broker.port()));
}

TEST_CASE("what came before a bad request is done and answered") {
  Directory directory;
  Running broker(directory);
  broker.create("t");
  const base::Buffer batch = batch_of({"a"});
  base::Buffer cut = produce("t", batch, 3, 1);
  cut.resize(30);
  protocol::store_be<std::int32_t>(cut.data(), 26);
  base::Buffer unserved = header(0, 2);
  base::Buffer no_header = header(0, 9);
  no_header.resize(7);
  std::int64_t end = 0;
  // With acks=all the answers wait for the disk, and are given later.
  const std::int16_t acks = GENERATE(std::int16_t{1}, std::int16_t{-1});
  const auto closes_after = [&](const base::Buffer& bad) {
    Client client(broker.port());
    // Memory is kept for a connection that has sent a request, and then it is read ahead.
    REQUIRE(client.socket().send(produce("t", batch, 0, 1)));
    CHECK(receive_produced(client) == Produced{0, 0, end++});
    base::Buffer all;
    add(all, produce("t", batch, 1, acks));
    add(all, produce("t", batch, 2, acks));
    add(all, bad);
    add(all, produce("t", batch, 4, acks));
    REQUIRE(client.socket().send(all));
    CHECK(receive_produced(client) == Produced{1, 0, end++});
    CHECK(receive_produced(client) == Produced{2, 0, end++});
    CHECK(client.socket().is_closed_by_peer());
  };
  closes_after(cut);
  closes_after(framed(unserved));
  closes_after(framed(no_header));
  closes_after(with_size(-1, ""));
  closes_after(with_size(0, ""));
  closes_after(with_size(2'147'483'647, ""));
  // One that wants no answer fails. What is behind it is written, but nobody is told.
  closes_after(produce("none", batch, 3, 0));
  CHECK(still_serves(broker.port()));
}

TEST_CASE("the memory of a quiet connection is given back, and it goes on") {
  Directory directory;
  Running broker(directory);
  broker.create("t");
  const base::Buffer batch = batch_of({std::string(900'000, 'x')});
  const auto free_bytes = [&broker] {
    std::uint64_t free = 0;
    for (std::size_t i = 0; i < broker->shard_count(); ++i) {
      Shard* const shard = &broker->shard(i);
      auto ask = [shard]() -> boost::asio::awaitable<std::uint64_t> {
        co_return shard->kept_buffers().free_bytes();
      };
      free += boost::asio::co_spawn(shard->executor(), ask, boost::asio::use_future).get();
    }
    return free;
  };
  const auto comes_true = [](const auto& condition) {
    const auto deadline = base::Clock::now() + 4 * buffer_idle_max;
    while (!condition() && base::Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return condition();
  };
  const std::uint64_t at_first = free_bytes();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<Client>(broker.port()));
  for (const auto& one : clients) REQUIRE(one->socket().send(produce("t", batch, 0, 1)));
  for (const auto& one : clients) CHECK(receive_produced(*one).error == 0);
  CHECK(comes_true([&] { return free_bytes() + 20 * batch.size() <= at_first; }));
  CHECK(comes_true([&] { return free_bytes() == at_first; }));
  for (const auto& one : clients) REQUIRE(one->socket().send(produce("t", batch, 1, 1)));
  for (const auto& one : clients) CHECK(receive_produced(*one).error == 0);
}

TEST_CASE("produce requests of a connection share syncs, and answers keep their order") {
  constexpr int requests = 40, sync_ms = 50;
  Directory directory;
  LockedFiles files(1);
  Running broker(directory, {}, files);
  broker.create("t");
  const base::Buffer batch = batch_of({"a"});
  protocol::MetadataRequest metadata;
  metadata.topics.reset();
  files.syncs.take_ms = sync_ms;
  files.syncs.count = 0;
  Client client(broker.port());
  for (std::int32_t i = 0; i < requests; ++i) {
    REQUIRE(client.socket().send(produce_all("t", batch, i)));
    // Another request in between waits for those before it, and those behind it for it.
    if (i == requests / 2) REQUIRE(client.socket().send(encode_request(9, metadata, 1'000)));
  }
  for (std::int32_t i = 0; i < requests; ++i) {
    REQUIRE(receive_produced(client) == Produced{i, 0, i});
    if (i != requests / 2) continue;
    CHECK(protocol::load_be<std::int32_t>(client.receive().data()) == 1'000);
  }
  // Each alone would take one sync for itself.
  CHECK(files.syncs.count >= 1);
  CHECK(files.syncs.count < requests / 2);
  CHECK(still_serves(broker.port()));
}

TEST_CASE("a peer that leaves while the disk works is forgotten, what it wrote is kept") {
  Directory directory;
  LockedFiles files(1);
  Running broker(directory, {}, files);
  broker.create("t");
  files.syncs.take_ms = 100;
  {
    Client client(broker.port());
    for (std::int32_t i = 0; i < 8; ++i)
      REQUIRE(client.socket().send(produce_all("t", batch_of({"a"}), i)));
    REQUIRE_FALSE(client.receive().empty());
  }
  files.syncs.take_ms = 0;
  Client next(broker.port());
  REQUIRE(next.socket().send(produce_all("t", batch_of({"a"}), 9)));
  CHECK(protocol::load_be<std::int32_t>(next.receive().data()) == 9);
  CHECK(still_serves(broker.port()));
}

TEST_CASE("requests are as large as socket.request.max.bytes, and no larger") {
  Directory directory;
  Running broker(directory, {"socket.request.max.bytes=2000"});
  const auto of_size = [](std::size_t size) {
    protocol::MetadataRequest asked;
    asked.topics.emplace().emplace_back().name = "";
    const std::size_t rest = encode_request(1, asked).size() - 4;
    asked.topics->front().name = std::string(size - rest, 'n');
    return encode_request(1, asked);
  };
  Client client(broker.port());
  REQUIRE(client.socket().send(of_size(2000)));
  CHECK(!client.receive().empty());
  client.socket().send(of_size(2001));
  CHECK(client.receive().empty());
  CHECK(still_serves(broker.port()));
}

TEST_CASE("a stop does not wait for long polls and idle clients") {
  Directory directory;
  auto broker = std::make_unique<Running>(directory);
  Socket idle(broker->port());
  const auto began = std::chrono::steady_clock::now();
  broker.reset();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));
  CHECK(idle.is_closed_by_peer());
}

}  // namespace broker::test
