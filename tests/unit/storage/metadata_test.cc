// The metadata store on RocksDB and the records in it.
#include <filesystem>

#include "storage/error.h"
#include "storage/metadata/records.h"
#include "storage/metadata/store.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using namespace storage;

TEST_CASE("metadata store: transactions, revisions, ranges, watches") {
  TemporaryDirectory directory;
  auto store = open_rocksdb_store(directory / "metadata").value();
  CHECK(store->revision() == 0);
  CHECK(store->get("a").value() == std::nullopt);

  std::vector<std::string> seen;
  const auto number = store->watch("topics/", [&](const Write& write, std::uint64_t revision) {
    seen.push_back(write.key + (write.value ? "=" + *write.value : " gone") + "@" +
                   std::to_string(revision));
  });
  CHECK(store->txn({{"topics/a", 0}}, {{"topics/a", "1"}, {"topics/b", "2"}, {"other", "3"}})
            .value() == 1);
  CHECK(store->txn({{"topics/a", 0}}, {{"topics/a", "x"}}).error() == StorageErrc::conflict);
  CHECK(store->txn({{"topics/a", 2}}, {{"topics/a", "x"}}).error() == StorageErrc::conflict);
  CHECK(store->txn({{"topics/a", 1}}, {{"topics/a", "4"}, {"topics/b", std::nullopt}}).value() ==
        2);
  CHECK(store->txn({}, {}).value() == 2);
  CHECK(seen == std::vector<std::string>{"topics/a=1@1", "topics/b=2@1", "topics/a=4@2",
                                         "topics/b gone@2"});
  store->unwatch(number);
  REQUIRE(store->txn({}, {{"topics/c", ""}}));
  CHECK(seen.size() == 4);

  auto all = store->range("topics/").value();
  REQUIRE(all.size() == 2);
  CHECK(all[0].key == "topics/a");
  CHECK(all[0].value == "4");
  CHECK(all[0].revision == 2);
  CHECK(all[1].value.empty());
  CHECK(store->range("topics/z").value().empty());
  CHECK(open_rocksdb_store(directory / "metadata").error() == StorageErrc::locked);
}

TEST_CASE("metadata store: what a transaction returned survives a kill") {
  TemporaryDirectory directory;
  auto store = open_rocksdb_store(directory / "metadata").value();
  for (int i = 0; i < 200; ++i)
    REQUIRE(store->txn(
        {}, {{"k" + std::to_string(i % 50), std::string(500, 'v') + std::to_string(i)}}));
  // The files as they are while the process lives: nothing was closed.
  std::filesystem::copy(directory / "metadata", directory / "copy",
                        std::filesystem::copy_options::recursive);
  auto copy = open_rocksdb_store(directory / "copy").value();
  CHECK(copy->revision() == 200);
  CHECK(copy->range("k").value().size() == 50);
  CHECK(copy->get("k49").value()->revision == 200);
  CHECK(copy->txn({}, {{"k0", "new"}}).value() == 201);
}

TEST_CASE("metadata records keep every field") {
  TopicRecord topic;
  topic.name = "t";
  topic.id.bytes[0] = std::byte{1};
  topic.partitions = {{1, 5}, {2, 0}};
  topic.configs = {{"cleanup.policy", "compact"}, {"segment.bytes", "100"}};
  topic.internal = true;
  topic.mirror = "m";
  topic.desired_state = 0;
  auto read = decode_topic(encode(topic)).value();
  CHECK(read.name == "t");
  CHECK(read.id == topic.id);
  REQUIRE(read.partitions.size() == 2);
  CHECK(read.partitions[0].leader_epoch == 5);
  CHECK(read.configs == topic.configs);
  CHECK(read.internal);
  CHECK(read.mirror == "m");
  CHECK(read.desired_state == 0);
  CHECK(read.unknown_fields.empty());
  topic.desired_state = -1;
  CHECK(decode_topic(encode(topic))->desired_state == -1);

  MirrorRecord mirror;
  mirror.name = "m";
  mirror.configs = {{"bootstrap.servers", "h:1"}};
  mirror.created_ms = 77;
  CHECK(decode_mirror(encode(mirror))->configs == mirror.configs);
  CHECK(decode_mirror(encode(mirror))->created_ms == 77);
  ProducerIdBlockRecord block;
  block.next = 12345678901;
  CHECK(decode_producer_id_block(encode(block))->next == 12345678901);
  ClusterRecord cluster;
  cluster.cluster_id = "c";
  CHECK(decode_cluster(encode(cluster))->cluster_id == "c");
}

TEST_CASE("metadata records carry what they do not know, and refuse garbage") {
  const std::string newer = std::string("\xfa\x01\x03", 3) + "new";  // field 31, three bytes
  MirrorRecord mirror;
  mirror.name = "m";
  auto read = decode_mirror(encode(mirror) + newer).value();
  CHECK(read.name == "m");
  read.name = "changed";
  const std::string written = encode(read);
  CHECK(written.find(newer) != std::string::npos);
  CHECK(decode_mirror(written)->name == "changed");
  CHECK(decode_mirror("\xff\xff").error() == StorageErrc::corrupt_file);
  CHECK(decode_topic("").error() == StorageErrc::corrupt_file);  // no id
}
