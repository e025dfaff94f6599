// The table of the settings that are served. Names, ranges and defaults are Kafka's where Kafka has
// the setting; those that begin with `calque.` are our own.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "broker/config.h"

namespace broker {
namespace {

using Type = ConfigType;
constexpr std::int64_t any = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t long_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t request_bytes_max = 1 << 30;

constexpr std::array table = {
    Setting{"advertised.listeners",
            Type::list,
            {},
            any,
            long_max,
            false,
            "The addresses that clients are told to use, NAME://HOST:PORT, one for each listener; "
            "the listeners' own when not set."},
    Setting{"auto.create.topics.enable", Type::boolean, "true", any, long_max, false,
            "Whether asking for a topic that is not there creates it, if the client wants that. "
            "Not while a mirror is active: the name may be one of its source's."},
    Setting{"broker.id", Type::int32, {}, 0, int_max, false, "The older name of node.id."},
    Setting{"broker.rack",
            Type::text,
            {},
            any,
            long_max,
            false,
            "Where this broker stands, as clients are told."},
    Setting{
        "calque.disk.reserve.bytes",
        Type::int64,
        {},
        0,
        long_max,
        false,
        "Appends are refused while the disk has less space left than this, reads and deletes go "
        "on; when not set, the lesser of 5 % of the disk and 1 GiB."},
    Setting{"calque.log.level", Type::text, "info", any, long_max, false,
            "What is written to standard error: trace, debug, info, warning, error or off.",
            "trace,debug,info,warning,error,off"},
    Setting{"calque.shards",
            Type::int32,
            {},
            1,
            64,
            false,
            "Threads that own partitions and connections; when not set, one for each core but at "
            "most 4."},
    Setting{"compression.type", Type::text, "producer", any, long_max, true,
            "The codec of stored batches for topics without an own one; producer keeps what "
            "came.",
            "uncompressed,zstd,lz4,snappy,gzip,producer"},
    Setting{"connections.max.idle.ms", Type::int64, "600000", -1, long_max, false,
            "A connection without a request for so long is closed; negative: never."},
    Setting{"controller.listener.names", Type::list, "", any, long_max, false,
            "Listeners of these names are left out: Calque has no controller of its own."},
    Setting{"delete.topic.enable", Type::boolean, "true", any, long_max, false,
            "Whether topics can be deleted."},
    Setting{"fetch.max.bytes", Type::int32, "57671680", 1024, int_max, false,
            "The most that one answer to Fetch holds, but for a single larger batch."},
    Setting{"group.consumer.assignment.interval.ms", Type::int32, "1000", 0, int_max, false,
            "The least time between two assignments of a group of the consumer protocol."},
    Setting{"group.consumer.assignors", Type::list, "uniform,range", any, long_max, false,
            "The assignors that such groups may use; the first is for those that prefer none.",
            "uniform,range"},
    Setting{"group.consumer.heartbeat.interval.ms", Type::int32, "5000", 1, int_max, false,
            "How often members of such groups are to send a heartbeat."},
    Setting{"group.consumer.max.assignment.interval.ms", Type::int32, "15000", 0, int_max, false,
            "The most that a group may set itself as consumer.assignment.interval.ms."},
    Setting{"group.consumer.max.heartbeat.interval.ms", Type::int32, "15000", 1, int_max, false,
            "The most that a group may set itself as consumer.heartbeat.interval.ms."},
    Setting{"group.consumer.max.session.timeout.ms", Type::int32, "60000", 1, int_max, false,
            "The most that a group may set itself as consumer.session.timeout.ms."},
    Setting{"group.consumer.max.size", Type::int32, "2147483647", 1, int_max, false,
            "The most members that such a group may have."},
    Setting{"group.consumer.migration.policy", Type::text, "bidirectional", any, long_max, false,
            "Which way a group with members may change its protocol: upgrade is from classic.",
            "bidirectional,upgrade,downgrade,disabled"},
    Setting{"group.consumer.min.assignment.interval.ms", Type::int32, "0", 0, int_max, false,
            "The least that a group may set itself as consumer.assignment.interval.ms."},
    Setting{"group.consumer.min.heartbeat.interval.ms", Type::int32, "5000", 1, int_max, false,
            "The least that a group may set itself as consumer.heartbeat.interval.ms."},
    Setting{"group.consumer.min.session.timeout.ms", Type::int32, "45000", 1, int_max, false,
            "The least that a group may set itself as consumer.session.timeout.ms."},
    Setting{"group.consumer.regex.refresh.interval.ms", Type::int32, "600000", 10'000, int_max,
            false, "At the latest after so long it is looked up which topics a pattern matches."},
    Setting{"group.consumer.session.timeout.ms", Type::int32, "45000", 1, int_max, false,
            "A member of such a group that is not heard of for so long is out."},
    Setting{"group.initial.rebalance.delay.ms", Type::int32, "3000", 0, int_max, false,
            "How long a group that was empty waits for more members before it first assigns."},
    Setting{"group.max.session.timeout.ms", Type::int32, "1800000", 0, int_max, false,
            "The longest time that a member may ask to be thought alive without being heard of."},
    Setting{"group.max.size", Type::int32, "2147483647", 1, int_max, false,
            "The most members that a group may have."},
    Setting{"group.min.session.timeout.ms", Type::int32, "6000", 0, int_max, false,
            "The shortest time that a member may ask to be thought alive without being heard of."},
    Setting{"listener.security.protocol.map", Type::text, "PLAINTEXT:PLAINTEXT", any, long_max,
            false, "The protocol of each listener name; PLAINTEXT is the one that is served."},
    Setting{"listeners", Type::list, "PLAINTEXT://:9092", any, long_max, false,
            "The addresses to listen on, NAME://HOST:PORT; an empty host means all addresses."},
    Setting{"log.cleaner.backoff.ms", Type::int64, "15000", 1, int_max, false,
            "How often the internal topics are looked at for something to compact."},
    Setting{"log.cleanup.policy", Type::list, "delete", any, long_max, true,
            "What happens to old records: delete, compact or both.", "compact,delete"},
    Setting{"log.dir", Type::text, {}, any, long_max, false, "The older name of log.dirs."},
    Setting{"log.dirs",
            Type::list,
            {},
            any,
            long_max,
            false,
            "The directory that holds everything; one is served."},
    Setting{"log.flush.offset.checkpoint.interval.ms", Type::int32, "60000", 100, int_max, false,
            "How often recovery points, log starts and high watermarks are written down."},
    Setting{"log.index.interval.bytes", Type::int32, "4096", 0, int_max, true,
            "Bytes of a segment between two entries of its index."},
    Setting{"log.index.size.max.bytes", Type::int32, "10485760", 4, int_max, true,
            "The largest size of an index file."},
    Setting{"log.initial.task.delay.ms", Type::int64, "30000", 0, long_max, false,
            "How long after the start old segments are looked for first."},
    Setting{"log.message.timestamp.after.max.ms", Type::int64, "3600000", 0, long_max, true,
            "Records whose timestamp is further in the future are refused."},
    Setting{"log.message.timestamp.before.max.ms", Type::int64, "9223372036854775807", 0, long_max,
            true, "Records whose timestamp is further in the past are refused."},
    Setting{"log.message.timestamp.type", Type::text, "CreateTime", any, long_max, true,
            "CreateTime keeps the producer's timestamps, LogAppendTime sets the broker's.",
            "CreateTime,LogAppendTime"},
    Setting{"log.retention.bytes", Type::int64, "-1", any, long_max, true,
            "Bytes of a partition above which its oldest segments are dropped; -1: no limit."},
    Setting{"log.retention.check.interval.ms", Type::int64, "300000", 1, long_max, false,
            "How often old segments are looked for."},
    Setting{
        "log.retention.hours", Type::int32, "168", any, int_max, false,
        "Age above which segments are dropped, when neither log.retention.ms nor .minutes is set."},
    Setting{"log.retention.minutes",
            Type::int32,
            {},
            any,
            int_max,
            false,
            "Age above which segments are dropped, when log.retention.ms is not set."},
    Setting{"log.retention.ms",
            Type::int64,
            {},
            any,
            long_max,
            true,
            "Age above which segments are dropped; -1: no limit."},
    Setting{"log.roll.hours", Type::int32, "168", 1, int_max, false,
            "Age at which a segment is closed, when log.roll.ms is not set."},
    Setting{"log.roll.jitter.hours", Type::int32, "0", 0, int_max, false,
            "The largest random time by which a roll comes earlier, when log.roll.jitter.ms is not "
            "set."},
    Setting{"log.roll.jitter.ms",
            Type::int64,
            {},
            any,
            long_max,
            true,
            "The largest random time by which a roll comes earlier."},
    Setting{"log.roll.ms", Type::int64, {}, 1, long_max, true, "Age at which a segment is closed."},
    Setting{"log.segment.bytes", Type::int32, "1073741824", 14, int_max, true,
            "Size at which a segment is closed."},
    Setting{"log.segment.delete.delay.ms", Type::int64, "60000", 0, long_max, true,
            "How long files stay on disk after their segment or topic was deleted."},
    Setting{"max.connection.creation.rate", Type::int32, "2147483647", 1, int_max, true,
            "New connections a second, over quota.window.num windows; those beyond it wait until "
            "they are let in."},
    Setting{"max.connections", Type::int32, "2147483647", 0, int_max, true,
            "Connections at one time; those beyond it are closed at once."},
    Setting{"max.connections.per.ip", Type::int32, "2147483647", 0, int_max, true,
            "Connections of one address at one time; those beyond it are closed at once."},
    Setting{"max.connections.per.ip.overrides", Type::text, "", any, long_max, true,
            "Other limits than max.connections.per.ip for single addresses: ADDRESS:COUNT with "
            "commas between. Names of hosts are not looked up."},
    Setting{"max.incremental.fetch.session.cache.slots", Type::int32, "1000", 0, int_max, false,
            "Consumers that may fetch with a session, which saves them from naming all partitions "
            "each time; others are served all the same."},
    Setting{"max.request.partition.size.limit", Type::int32, "2000", 1, int_max, false,
            "The most partitions that one answer to DescribeTopicPartitions holds."},
    Setting{"message.max.bytes", Type::int32, "1048588", 0, int_max, true,
            "The largest batch that a producer may send."},
    Setting{"mirror.failed.retry.initial.backoff.ms", Type::int64, "100", 1, long_max, false,
            "Pause before a failed mirror partition is first tried again."},
    Setting{"mirror.failed.retry.max.attempts", Type::int32, "20", 0, 32767, false,
            "How often a failed mirror partition is tried again by itself; 0: never."},
    Setting{"mirror.failed.retry.max.backoff.ms", Type::int64, "300000", 1, long_max, false,
            "The longest pause before a failed mirror partition is tried again."},
    Setting{"mirror.metadata.refresh.interval.ms", Type::int64, "60000", 0, long_max, false,
            "How often a mirror looks at its source's topics, partitions and leaders."},
    Setting{"mirror.state.topic.num.partitions", Type::int32, "50", 1, 10000, false,
            "Partitions of __mirror_state; it must not change once the topic is there."},
    Setting{"node.id", Type::int32, {}, 0, int_max, false, "The number of this broker."},
    Setting{"num.io.threads", Type::int32, "8", 1, int_max, false,
            "Upper bound of the number of shards where calque.shards is not set."},
    Setting{"num.partitions", Type::int32, "1", 1, 10000, false,
            "Partitions of a topic that is created without a number of them."},
    Setting{"offset.metadata.max.bytes", Type::int32, "4096", 0, int_max, false,
            "The most that a client may store with a committed offset."},
    Setting{"offsets.retention.check.interval.ms", Type::int64, "600000", 1, int_max, false,
            "How often committed offsets are looked for that are too old."},
    Setting{"offsets.retention.minutes", Type::int32, "10080", 1, int_max, false,
            "Committed offsets are dropped so long after their group became empty, or no longer "
            "consumes their topic; those of consumers without a group so long after the commit."},
    Setting{"offsets.topic.num.partitions", Type::int32, "50", 1, 10000, false,
            "Partitions of __consumer_offsets; it must not change once the topic is there."},
    Setting{"offsets.topic.segment.bytes", Type::int32, "1048576", 14, int_max, false,
            "Segment size of __consumer_offsets. Smaller than Kafka's, since a segment is what is "
            "compacted at a time."},
    Setting{"producer.id.expiration.check.interval.ms", Type::int32, "600000", 1, int_max, false,
            "How often producers are looked for that can be forgotten."},
    Setting{"producer.id.expiration.ms", Type::int32, "86400000", 1, int_max, true,
            "Producers that have not written for so long are forgotten."},
    Setting{"queued.max.request.bytes", Type::int64, "-1", -1, long_max, false,
            "Bytes of requests in memory at one time; -1: four times the largest request."},
    Setting{"quota.window.num", Type::int32, "11", 1, int_max, false,
            "Windows of time over which the rates of clients are measured."},
    Setting{"quota.window.size.seconds", Type::int32, "1", 1, int_max, false,
            "The length of one such window."},
    Setting{"socket.listen.backlog.size", Type::int32, "50", 1, int_max, false,
            "Connections that may wait to be accepted."},
    Setting{"socket.request.max.bytes", Type::int32, "104857600", 1, request_bytes_max, false,
            "The largest request; a connection that announces a larger one is closed."},
    Setting{"transaction.max.timeout.ms", Type::int32, "900000", 1, int_max, false,
            "The longest time that a producer may ask for a transaction."},
    Setting{"transaction.partition.verification.enable", Type::boolean, "true", any, long_max,
            false,
            "Whether batches of producers that add partitions themselves are only accepted when "
            "the partition is in the transaction; others always are."},
    Setting{"transaction.remove.expired.transaction.cleanup.interval.ms", Type::int32, "3600000", 1,
            int_max, false, "How often transactional ids are looked for that are too old."},
    Setting{"transaction.state.log.num.partitions", Type::int32, "50", 1, 10000, false,
            "Partitions of __transaction_state; it must not change once the topic is there."},
    Setting{"transaction.state.log.segment.bytes", Type::int32, "1048576", 14, int_max, false,
            "Segment size of __transaction_state. Smaller than Kafka's, since a segment is what "
            "is compacted at a time."},
    Setting{"transactional.id.expiration.ms", Type::int32, "604800000", 1, int_max, false,
            "Transactional ids that were not used for so long are forgotten."},
};
static_assert(std::ranges::is_sorted(table, {}, &Setting::name));

std::string_view type_name(ConfigType type) {
  switch (type) {
    case Type::boolean:
      return "boolean";
    case Type::text:
      return "string";
    case Type::int32:
      return "int";
    case Type::int16:
      return "short";
    case Type::int64:
      return "long";
    case Type::real:
      return "double";
    case Type::list:
      return "list";
  }
  return "";
}

}  // namespace

std::span<const Setting> settings() {
  return table;
}

const Setting* find_setting(std::string_view name) {
  const auto at = std::ranges::lower_bound(table, name, {}, &Setting::name);
  return at != table.end() && at->name == name ? &*at : nullptr;
}

std::string describe_settings() {
  std::string out;
  for (const Setting& one : table) {
    const std::string_view fallback = one.fallback.value_or("none");
    out += fmt::format("{} ({}, default {})\n    {}\n", one.name, type_name(one.type),
                       fallback.empty() ? "empty" : fallback, one.sentence);
  }
  return out;
}

}  // namespace broker
