// The log directory: lock, identity, clean mark, checkpoints, deletion.
#include "storage/log_dir.h"

#include "storage/error.h"
#include "tests/lib/fault_file.h"
#include "tests/unit/storage/batches.h"

using namespace storage_test;
using storage::LogDirectory;
using storage::LogDirectoryIdentity;
using storage::StorageErrc;

namespace {

LogDirectoryIdentity node(base::NodeId id, std::string cluster = "") {
  LogDirectoryIdentity identity;
  identity.node_id = id;
  identity.cluster_id = std::move(cluster);
  return identity;
}

base::Uuid topic_id() {
  base::Uuid id;
  id.bytes[3] = std::byte{9};
  return id;
}

LogDirectory::Checkpoint checkpoint_of(const storage::Log& log, const std::string& topic) {
  LogDirectory::Checkpoint one;
  one.topic = topic;
  one.recovery_point = log.durable_end();
  one.log_start = log.log_start();
  one.high_watermark = log.log_end();
  return one;
}

}  // namespace

TEST_CASE("identity is made once, kept, and compared") {
  FaultFileSystem files(1);
  std::string cluster;
  base::Uuid id;
  {
    auto directory = LogDirectory::open(files, "/d", node(4));
    REQUIRE(directory);
    cluster = (*directory)->identity().cluster_id;
    id = (*directory)->identity().directory_id;
    CHECK(cluster.size() == 22);
    CHECK_FALSE((*directory)->was_clean());
    CHECK(LogDirectory::open(files, "/d", node(4)).error() == StorageErrc::locked);
    CHECK(base::as_text(files.content("/d/meta.properties")) ==
          "cluster.id=" + cluster + "\ndirectory.id=" + id.to_string() +
              "\nnode.id=4\nversion=1\n");
  }
  CHECK(LogDirectory::open(files, "/d", node(5)).error() == StorageErrc::wrong_cluster);
  CHECK(LogDirectory::open(files, "/d", node(4, "other")).error() == StorageErrc::wrong_cluster);
  auto again = LogDirectory::open(files, "/d", node(4));
  REQUIRE(again);
  CHECK((*again)->identity().cluster_id == cluster);
  CHECK((*again)->identity().directory_id == id);
}

TEST_CASE("meta.properties of a Kafka broker with ZooKeeper is read") {
  FaultFileSystem files(1);
  REQUIRE(files.create_directory("/d"));
  REQUIRE(files.write_whole("/d/meta.properties",
                            base::as_bytes("#\n#Mon\ncluster.id=abc\nversion=0\nbroker.id=3\n")));
  CHECK(LogDirectory::open(files, "/d", node(3)).value()->identity().cluster_id == "abc");
  REQUIRE(files.write_whole("/d/meta.properties", base::as_bytes("version=1\n")));
  CHECK(LogDirectory::open(files, "/d", node(3)).error() == StorageErrc::corrupt_file);
}

TEST_CASE("B03: the clean mark is gone before anything is loaded, and made last") {
  FaultFileSystem files(1);
  {
    auto directory = LogDirectory::open(files, "/d", node(1)).value();
    auto log = directory->open_log("t", 0, topic_id(), {}, 0, 0).value();
    REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 4}), 0, 0));
    REQUIRE(log->advance_log_start(2));
    REQUIRE(log->close());
    REQUIRE(directory->close_clean({checkpoint_of(*log, "t")}));
  }
  CHECK(files.exists("/d/.kafka_cleanshutdown").value());
  {
    auto directory = LogDirectory::open(files, "/d", node(1)).value();
    CHECK(directory->was_clean());
    CHECK_FALSE(files.exists("/d/.kafka_cleanshutdown").value());
    files.power_cut();  // in the middle of loading
  }
  auto directory = LogDirectory::open(files, "/d", node(1)).value();
  CHECK_FALSE(directory->was_clean());
  auto known = directory->checkpoint("t", 0);
  REQUIRE(known);
  CHECK(known->recovery_point == 4);
  CHECK(known->log_start == 2);
  auto log = directory->open_log("t", 0, topic_id(), {}, 0, 0).value();
  CHECK(log->log_start() == 2);
  CHECK(log->log_end() == 4);
}

TEST_CASE("partitions are found, checked by topic id, and deleted for good") {
  FaultFileSystem files(1);
  const std::string long_name(249, 'x');
  auto directory = LogDirectory::open(files, "/d", node(1)).value();
  {
    auto one = directory->open_log("with-dash", 12, topic_id(), {}, 0, 0).value();
    auto two = directory->open_log(long_name, 9999, topic_id(), {}, 0, 0).value();
    REQUIRE(one->append_verbatim(make_batch({.base = 0, .count = 4}), 0, 0));
    REQUIRE(sync(*one));
    auto checkpoint = checkpoint_of(*one, "with-dash");
    checkpoint.partition = 12;
    REQUIRE(directory->write_checkpoints({checkpoint}));
  }
  REQUIRE(files.create_directory("/d/metadata"));
  REQUIRE(files.create_directory("/d/gone-3.0123-delete"));
  REQUIRE(files.create_directory("/d/lost-3.0123-stray"));
  auto found = directory->scan().value();
  REQUIRE(found.size() == 2);
  CHECK(found[0].topic == "with-dash");
  CHECK(found[0].partition == 12);
  CHECK(found[0].topic_id == topic_id());
  CHECK(found[1].topic == long_name);
  CHECK_FALSE(files.exists("/d/gone-3.0123-delete").value());
  CHECK(files.exists("/d/lost-3.0123-stray").value());
  CHECK(directory->open_log("with-dash", 12, base::Uuid{}, {}, 0, 0).error() ==
        StorageErrc::conflict);

  REQUIRE(directory->delete_log("with-dash", 12));
  REQUIRE(directory->delete_log(long_name, 9999));
  REQUIRE(directory->delete_log("never-there", 0));
  CHECK(directory->scan().value().empty());
  CHECK_FALSE(directory->checkpoint("with-dash", 12));
  // The new topic of that name begins anew.
  auto log = directory->open_log("with-dash", 12, topic_id(), {}, 0, 0).value();
  CHECK(log->log_end() == 0);
}

TEST_CASE("G06: on a full disk a topic can be deleted, and that makes room") {
  FaultFileSystem files(1);
  auto directory = LogDirectory::open(files, "/d", node(1)).value();
  auto log = directory->open_log("t", 0, topic_id(), {}, 0, 0).value();
  auto other = directory->open_log("u", 0, topic_id(), {}, 0, 0).value();
  REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 4, .value_bytes = 2000}), 0, 0));
  REQUIRE(log->advance_log_start(2));
  REQUIRE(sync(*log));
  REQUIRE(directory->write_checkpoints({checkpoint_of(*log, "t")}));
  files.capacity_bytes = 0;
  CHECK(other->append_verbatim(make_batch({.base = 0}), 0, 0).error() == StorageErrc::no_space);
  log.reset();
  CHECK(directory->delete_log("t", 0).has_error());  // gone, but not yet from the checkpoint files
  CHECK_FALSE(files.exists("/d/t-0").value());
  // A new log of its name waits for that.
  CHECK(directory->open_log("t", 0, topic_id(), {}, 0, 0).has_error());
  files.capacity_bytes = 20'000;
  REQUIRE(directory->delete_log("t", 0));
  REQUIRE(other->append_verbatim(make_batch({.base = 0}), 0, 0));
  log = directory->open_log("t", 0, topic_id(), {}, 0, 0).value();
  CHECK(log->log_start() == 0);
  log.reset();
  other.reset();
  directory.reset();
  directory = LogDirectory::open(files, "/d", node(1)).value();
  CHECK_FALSE(directory->checkpoint("t", 0));
}

TEST_CASE("a damaged checkpoint file means verification, not failure") {
  FaultFileSystem files(1);
  {
    auto directory = LogDirectory::open(files, "/d", node(1)).value();
    auto log = directory->open_log("t", 0, topic_id(), {}, 0, 0).value();
    REQUIRE(log->append_verbatim(make_batch({.base = 0, .count = 4}), 0, 0));
    REQUIRE(log->close());
    REQUIRE(directory->close_clean({checkpoint_of(*log, "t")}));
  }
  files.content("/d/recovery-point-offset-checkpoint").resize(3);
  auto directory = LogDirectory::open(files, "/d", node(1)).value();
  CHECK_FALSE(directory->was_clean());
  CHECK(directory->open_log("t", 0, topic_id(), {}, 0, 0).value()->log_end() == 4);
}

TEST_CASE("the real file system locks, lists and replaces") {
  TemporaryDirectory temporary;
  auto& files = storage::posix_file_system();
  auto held = files.lock(temporary / ".lock");
  REQUIRE(held);
  CHECK(files.lock(temporary / ".lock").error() == StorageErrc::locked);
  held->reset();
  CHECK(files.lock(temporary / ".lock"));
  REQUIRE(files.write_whole(temporary / "b", base::as_bytes("two")));
  REQUIRE(files.write_whole(temporary / "a", base::as_bytes("one")));
  CHECK(files.list(temporary.path()).value() == std::vector<std::string>{".lock", "a", "b"});
  CHECK(base::as_text(files.read_whole(temporary / "a").value()) == "one");
  CHECK(files.read_whole(temporary / "c").has_error());
  auto file = files.open(temporary / "a", storage::OpenMode::read_write).value();
  file->reserve(0, 1 << 20);
  CHECK(file->size().value() == 3);
  base::Buffer bytes(4);
  CHECK(file->pread(bytes, 0).error() == StorageErrc::short_read);
  CHECK(files.free_bytes(temporary.path()).value() > 0);
}
