#include "tools/dump.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "protocol/batch_builder.h"
#include "protocol/big_endian.h"
#include "protocol/crc32c.h"
#include "protocol/messages/last_mirror_epochs.gen.h"
#include "protocol/messages/mirror_partition_state.gen.h"
#include "protocol/record_frame.h"
#include "tools/failure.h"

namespace {

class Folder {
 public:
  explicit Folder(const std::string& name = "orders-0") {
    std::string pattern = std::filesystem::temp_directory_path() / "calque-dump-XXXXXX";
    root_ = mkdtemp(pattern.data());
    path_ = root_ + "/" + name;
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, base::Bytes bytes) const {
    std::ofstream(file(name), std::ios::binary) << base::as_text(bytes);
  }
  void write(const std::string& name, const std::string& text) const {
    write(name, base::as_bytes(text));
  }

 private:
  std::string root_, path_;
};

const std::string log_name = "00000000000000000000.log";

struct Dumped {
  bool valid = false;
  std::string text;
};
Dumped dump(const std::string& path, tools::DumpOptions options = {}) {
  std::ostringstream out;
  const bool valid = tools::Dump(storage::posix_file_system(), path, options, out).run();
  return {valid, out.str()};
}

base::Buffer batch(base::Offset base_offset, int count, std::int64_t timestamp,
                   protocol::Codec codec = protocol::Codec::none) {
  protocol::BatchOptions options;
  options.base_offset = base_offset;
  options.partition_leader_epoch = 4;
  options.codec = codec;
  protocol::BatchBuilder builder(options);
  const protocol::RecordHeader header{"h", base::as_bytes("\xff")};
  for (int i = 0; i < count; ++i)
    builder.add(timestamp + i, base::as_bytes("k"), base::as_bytes("v" + std::to_string(i)),
                std::span(&header, 1));
  return std::move(builder).build();
}

base::Buffer joined(const std::vector<base::Buffer>& parts) {
  base::Buffer whole;
  for (const base::Buffer& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

template <class... T>
base::Buffer big_endian(T... values) {
  base::Buffer out((0 + ... + sizeof(T)));
  std::size_t at = 0;
  ((protocol::store_be(&out[at], values), at += sizeof(T)), ...);
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("files are told by their names", "[tools]") {
  using tools::FileKind;
  CHECK(tools::kind_of("a/b-0/00000000000000000012.log") == FileKind::segment);
  CHECK(tools::kind_of("00000000000000000012.index") == FileKind::offset_index);
  CHECK(tools::kind_of("00000000000000000012.timeindex") == FileKind::time_index);
  CHECK(tools::kind_of("00000000000000000012.txnindex") == FileKind::transaction_index);
  CHECK(tools::kind_of("00000000000000000012.snapshot") == FileKind::producer_snapshot);
  CHECK(tools::kind_of("/x/leader-epoch-checkpoint") == FileKind::epoch_checkpoint);
  CHECK(tools::kind_of("partition.metadata") == FileKind::partition_metadata);
  for (const char* other : {"1.log", "0000000000000000001x.log", "00000000000000000012.log.deleted",
                            "00000000000000000012.cleaned", "x", ""})
    CHECK_FALSE(tools::kind_of(other));
}

TEST_CASE("a sound segment", "[tools]") {
  const Folder folder;
  folder.write(log_name, joined({batch(0, 3, 100), batch(5, 2, 200, protocol::Codec::zstd),
                                 protocol::end_transaction_marker({7, 1, 9}, 300)}));
  // Markers are built for the log to place them: give this one its offset.
  std::fstream file(folder.file(log_name), std::ios::in | std::ios::out | std::ios::binary);
  const auto position = static_cast<std::streamoff>(batch(0, 3, 100).size() +
                                                    batch(5, 2, 200, protocol::Codec::zstd).size());
  file.seekp(position);
  file << base::as_text(big_endian(std::int64_t{7}));
  file.close();

  const auto plain = dump(folder.file(log_name));
  CHECK(plain.valid);
  contains(plain.text, "batch baseOffset 0 lastOffset 2 position 0 bytes ");
  contains(plain.text,
           " leaderEpoch 4 records 3 codec none timestampType CreateTime maxTimestamp 102");
  contains(plain.text, "batch baseOffset 5 lastOffset 6 ");
  contains(plain.text, "codec zstd");
  contains(plain.text,
           "transactional control crc valid\n  record offset 7 timestamp 300 control "
           "ABORT coordinatorEpoch=9\n");
  contains(plain.text, "summary batches 3 ");
  contains(plain.text, "endOffset 8 problems 0\n");
  CHECK(plain.text.find("value") == std::string::npos);

  const auto records = dump(folder.file(log_name), {.records = true, .json = false});
  CHECK(records.valid);
  contains(records.text,
           "  record offset 1 timestamp 101 key \"k\" value \"v1\" header \"h\" "
           "hex:ff\n");
  contains(records.text, " records 6 ");

  const auto json = dump(folder.file(log_name), {.records = true, .json = true});
  contains(json.text, R"({"kind":"record","offset":6,"timestamp":201,"key":"\"k\"",)");
  contains(json.text, R"("control":false,"deleteHorizon":false,"crc":"valid"})");
}

TEST_CASE("damage in a segment is found and named", "[tools]") {
  const Folder folder;
  base::Buffer torn = joined({batch(0, 1, 100), batch(1, 1, 100)});
  torn.resize(torn.size() - 5);
  folder.write(log_name, torn);
  auto result = dump(folder.file(log_name));
  CHECK_FALSE(result.valid);
  contains(result.text, "INVALID: ");
  contains(result.text, "summary batches 1 ");

  base::Buffer flipped = joined({batch(0, 1, 100), batch(1, 1, 100)});
  flipped.back() ^= std::byte{1};
  folder.write(log_name, flipped);
  result = dump(folder.file(log_name), {.records = false, .json = true});
  CHECK_FALSE(result.valid);
  contains(result.text, R"("crc":"INVALID")");
  contains(result.text, R"({"kind":"problem","message":"the batch at position )");

  folder.write(log_name, joined({batch(5, 1, 100), batch(4, 1, 100)}));
  result = dump(folder.file(log_name));
  CHECK_FALSE(result.valid);
  contains(result.text, "begins at offset 4, below 6");

  folder.write("00000000000000000009.log", batch(5, 1, 100));
  result = dump(folder.file("00000000000000000009.log"));
  CHECK_FALSE(result.valid);
  contains(result.text, "begins at offset 5, below 9");

  folder.write(log_name, std::string());
  CHECK(dump(folder.file(log_name)).valid);
}

TEST_CASE("records of __mirror_state are decoded", "[tools]") {
  const Folder folder("__mirror_state-7");
  protocol::MirrorPartitionStateKey key;
  key.mirror_name = "m1";
  key.partition = 3;
  protocol::MirrorPartitionStateValue value;
  value.state = 8;
  value.state_epoch = 5;
  value.previous_state = 3;
  value.error_message = "gone";
  protocol::LastMirrorEpochsKey last_key;
  last_key.mirror_name = "m1";
  protocol::LastMirrorEpochsValue last;
  last.last_mirror_epoch = 2;
  last.last_mirror_offset = 77;
  protocol::BatchBuilder builder({});
  builder.add(1, protocol::frame_key(key), protocol::frame_value(value));
  builder.add(1, protocol::frame_key(last_key), protocol::frame_value(last));
  builder.add(1, protocol::frame_key(key), std::nullopt);
  builder.add(1, base::as_bytes("other"), base::as_bytes("thing"));
  folder.write(log_name, std::move(builder).build());
  const auto result = dump(folder.file(log_name), {.records = true, .json = false});
  CHECK(result.valid);
  contains(result.text,
           "mirrorState mirrorPartitionState mirror=m1 topicId=AAAAAAAAAAAAAAAAAAAAAA "
           "partition=3 state=FAILED leaderEpoch=-1 stateEpoch=5 retryAttempt=0 "
           "previousState=MIRRORING error='gone'\n");
  contains(result.text,
           "lastMirrorEpochs mirror=m1 topicId=AAAAAAAAAAAAAAAAAAAAAA partition=0 "
           "lastMirrorEpoch=2 lastMirrorOffset=77\n");
  contains(result.text, "partition=3 deleted\n");
  contains(result.text, "key \"other\" value \"thing\"\n");
}

TEST_CASE("offset indexes are held against their segment", "[tools]") {
  const Folder folder;
  const base::Buffer first = batch(0, 3, 100), second = batch(3, 2, 200);
  folder.write(log_name, joined({first, second}));
  const auto second_at = static_cast<std::int32_t>(first.size());
  const std::string index = "00000000000000000000.index";
  folder.write(index, big_endian(std::int32_t{4}, second_at));
  CHECK(dump(folder.file(index)).valid);
  // The tail that preallocation leaves is no damage.
  folder.write(index, big_endian(std::int32_t{4}, second_at, std::int64_t{0}, std::int64_t{0}));
  auto result = dump(folder.file(index));
  CHECK(result.valid);
  contains(result.text, "entry offset 4 position " + std::to_string(second_at) + "\n");
  contains(result.text, "preallocated bytes 16\n");
  contains(result.text, "summary entries 1 problems 0\n");

  folder.write(index, big_endian(std::int32_t{4}, second_at + 1));
  result = dump(folder.file(index));
  CHECK_FALSE(result.valid);
  contains(result.text, "no batch begins at position");
  folder.write(index, big_endian(std::int32_t{2}, second_at));
  CHECK_FALSE(dump(folder.file(index)).valid);
  folder.write(index, big_endian(std::int32_t{4}, second_at, std::int32_t{4}, second_at));
  contains(dump(folder.file(index)).text, "does not rise");
  folder.write(index, joined({big_endian(std::int32_t{4}, second_at), base::Buffer(3)}));
  contains(dump(folder.file(index)).text, "no multiple of the 8 bytes");
}

TEST_CASE("time indexes are held against their segment", "[tools]") {
  const Folder folder;
  folder.write(log_name, joined({batch(0, 3, 100), batch(3, 2, 200)}));
  const std::string index = "00000000000000000000.timeindex";
  folder.write(index,
               big_endian(std::int64_t{102}, std::int32_t{2}, std::int64_t{201}, std::int32_t{4}));
  CHECK(dump(folder.file(index)).valid);
  folder.write(index, big_endian(std::int64_t{999}, std::int32_t{2}));
  auto result = dump(folder.file(index));
  CHECK_FALSE(result.valid);
  contains(result.text, "largest timestamp 102, not 999");
  folder.write(index, big_endian(std::int64_t{102}, std::int32_t{9}));
  contains(dump(folder.file(index)).text, "holds offset 9");
  folder.write(index,
               big_endian(std::int64_t{201}, std::int32_t{4}, std::int64_t{102}, std::int32_t{2}));
  contains(dump(folder.file(index)).text, "falls below");
}

TEST_CASE("transaction indexes", "[tools]") {
  const Folder folder;
  const std::string index = "00000000000000000000.txnindex";
  const auto entry = [](std::int16_t version, std::int64_t first, std::int64_t last) {
    return big_endian(version, std::int64_t{5}, first, last, last);
  };
  folder.write(index, joined({entry(0, 1, 4), entry(0, 2, 8)}));
  const auto result = dump(folder.file(index));
  CHECK(result.valid);
  contains(result.text,
           "aborted version 0 producerId 5 firstOffset 2 lastOffset 8 lastStableOffset 8\n");
  folder.write(index, joined({entry(0, 1, 4), entry(0, 2, 4)}));
  CHECK_FALSE(dump(folder.file(index)).valid);
  folder.write(index, entry(1, 1, 4));
  CHECK_FALSE(dump(folder.file(index)).valid);
  folder.write(index, entry(0, 5, 4));
  CHECK_FALSE(dump(folder.file(index)).valid);
  folder.write(index, base::Buffer(10));
  CHECK_FALSE(dump(folder.file(index)).valid);
}

TEST_CASE("producer snapshots", "[tools]") {
  const Folder folder;
  const std::string name = "00000000000000000010.snapshot";
  const auto snapshot = [](std::int32_t count) {
    base::Buffer body =
        big_endian(count, std::int64_t{77}, std::int16_t{1}, std::int32_t{5}, std::int64_t{9},
                   std::int32_t{2}, std::int64_t{1234}, std::int32_t{-1}, std::int64_t{-1});
    return joined({big_endian(std::int16_t{1}, protocol::crc32c(body)), body});
  };
  folder.write(name, snapshot(1));
  const auto result = dump(folder.file(name), {.records = false, .json = true});
  CHECK(result.valid);
  contains(result.text, R"("producerId":77,"producerEpoch":1,"lastSequence":5,"lastOffset":9,)"
                        R"("offsetDelta":2,"timestamp":1234,"coordinatorEpoch":-1,)"
                        R"("transactionFirstOffset":null})");
  folder.write(name, snapshot(2));
  CHECK_FALSE(dump(folder.file(name)).valid);
  base::Buffer damaged = snapshot(1);
  damaged.back() ^= std::byte{1};
  folder.write(name, damaged);
  contains(dump(folder.file(name)).text, "the checksum does not match");
  folder.write(name, base::Buffer(4));
  CHECK_FALSE(dump(folder.file(name)).valid);
}

TEST_CASE("text files of the directory", "[tools]") {
  const Folder folder;
  const std::string epochs = "leader-epoch-checkpoint";
  folder.write(epochs, "0\n2\n0 0\n3 17\n");
  const auto result = dump(folder.file(epochs));
  CHECK(result.valid);
  contains(result.text, "epoch leaderEpoch 3 startOffset 17\n");
  for (const char* bad : {"", "1\n0\n", "0\nx\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n2\n3 0\n3 5\n",
                          "0\n2\n1 9\n2 5\n"}) {
    INFO(bad);
    folder.write(epochs, std::string(bad));
    CHECK_FALSE(dump(folder.file(epochs)).valid);
  }
  folder.write("partition.metadata", "version: 0\ntopic_id: S6fbPduMSICEuFSOhD24Og\n");
  contains(dump(folder.file("partition.metadata")).text,
           "partition topicId S6fbPduMSICEuFSOhD24Og\n");
  folder.write("partition.metadata", "version: 0\ntopic_id: short\n");
  CHECK_FALSE(dump(folder.file("partition.metadata")).valid);
}

TEST_CASE("what cannot be read ends with a sentence", "[tools]") {
  const Folder folder;
  CHECK_THROWS_AS(dump(folder.file(log_name)), tools::Failure);
  CHECK_THROWS_AS(dump(folder.file("other")), tools::Failure);
}
