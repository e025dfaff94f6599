#include "tools/topic_commands.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "protocol/error_code.h"
#include "protocol/messages/create_topics.gen.h"
#include "protocol/messages/delete_topics.gen.h"
#include "tools/bootstrap.h"
#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/mirror_wait.h"
#include "tools/table.h"

namespace tools {

namespace {

constexpr std::int64_t partitions_max = 10'000;
constexpr std::int32_t request_timeout_ms = 30'000;

void say(const Arguments& arguments, Output& output, std::string_view action,
         const std::string& topic) {
  if (arguments.flag("json")) {
    Json line;
    line.begin_object().field("topic", topic).field("action", action).end_object();
    output.out << line.text() << '\n';
  } else {
    output.out << fmt::format("Topic {} {}\n", topic, action);
  }
}

// Calls `send(controller)`, which gives the answer's error code and message, until the broker that
// was asked is the controller, for some seconds.
template <class F>
void ask_controller(Cluster& cluster, F send, std::string_view what) {
  constexpr int attempts_max = 40, pause_ms = 250;
  for (int attempt = 1;; ++attempt) {
    const std::pair<std::int16_t, std::optional<std::string>> answer = send(cluster.controller());
    if (answer.first == 0) return;
    if (answer.first != static_cast<std::int16_t>(protocol::ErrorCode::not_controller) ||
        attempt == attempts_max)
      throw Failure(ExitCode::failed,
                    fmt::format("{}: {}", what, error_text(answer.first, answer.second)));
    sleep_ms(pause_ms);
  }
}

ExitCode create(const Arguments& arguments, Output& output) {
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  const auto partitions = arguments.number("partitions", 1, 1, partitions_max);
  create_topic(cluster, arguments.positional, static_cast<std::int32_t>(partitions),
               arguments.pairs("config"));
  say(arguments, output, "created", arguments.positional);
  return ExitCode::ok;
}

ExitCode remove(const Arguments& arguments, Output& output) {
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  protocol::DeleteTopicsRequest request;
  request.timeout_ms = request_timeout_ms;
  // Both forms: which one is sent depends on the version.
  request.topics.push_back({arguments.positional, {}});
  request.topic_names.push_back(arguments.positional);
  const auto send = [&](Client& client) -> std::pair<std::int16_t, std::optional<std::string>> {
    const auto response = client.call<protocol::DeleteTopicsResponse>(request);
    for (const auto& topic : response.responses)
      if (topic.error_code != 0) return {topic.error_code, topic.error_message};
    return {0, {}};
  };
  ask_controller(cluster, send, fmt::format("topic '{}' was not deleted", arguments.positional));
  say(arguments, output, "deleted", arguments.positional);
  return ExitCode::ok;
}

ExitCode list(const Arguments& arguments, Output& output) {
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  const auto topics = cluster.topics();
  if (arguments.flag("json")) {
    Json json;
    json.begin_array();
    for (const Cluster::Topic& topic : topics)
      json.begin_object()
          .field("topic", topic.name)
          .field("partitions", topic.partitions.size())
          .field("topicId", topic.id.to_string())
          .field("internal", topic.internal)
          .end_object();
    output.out << json.end_array().text() << '\n';
    return ExitCode::ok;
  }
  const Table table({{"TOPIC", 40}, {"PARTITIONS", 10}, {"TOPIC-ID", 0}});
  if (topics.empty()) output.out << "No topics found\n";
  if (!topics.empty()) output.out << table.header();
  for (const Cluster::Topic& topic : topics)
    output.out << table.row({topic.name, std::to_string(topic.partitions.size()),
                             topic.id.is_zero() ? "-" : topic.id.to_string()});
  return ExitCode::ok;
}

// The states of the topic's partitions in its mirror. A broker other than Calque has no mirrors and
// hangs up on the question, which is why it gets a connection of its own.
void add_mirror_states(const Arguments& arguments, const std::string& topic,
                       std::vector<TopicPartitionRow>& rows) {
  std::vector<PartitionRow> states;
  try {
    Client client(bootstrap_of(arguments), "bootstrap-server");
    states = rows_of(describe_mirrors(client, ""));
  } catch (const Failure&) {
    return;
  }
  for (const PartitionRow& state : states)
    for (TopicPartitionRow& row : rows)
      if (state.topic == topic && state.partition == row.partition) {
        row.mirror = state.mirror;
        row.mirror_state = state.state;
      }
}

ExitCode describe(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.positional;
  Cluster cluster(bootstrap_of(arguments), "bootstrap-server");
  const auto topic = cluster.topic(name);
  if (!topic)
    throw Failure(
        ExitCode::failed,
        fmt::format("there is no topic '{}' at {}; 'calque topic list' shows those that there are",
                    name, cluster.any().address().to_string()));
  std::vector<TopicPartitionRow> rows;
  for (const Cluster::Partition& partition : topic->partitions) {
    TopicPartitionRow row;
    row.partition = partition.index;
    row.leader = partition.leader;
    row.leader_epoch = partition.leader_epoch;
    if (partition.leader) {
      row.start_offset = cluster.offset_at(name, partition.index, earliest_timestamp)->offset;
      row.end_offset = cluster.offset_at(name, partition.index, latest_timestamp)->offset;
    }
    rows.push_back(std::move(row));
  }
  add_mirror_states(arguments, name, rows);
  const std::string id = topic->id.is_zero() ? "" : topic->id.to_string();
  output.out << (arguments.flag("json") ? topic_json(name, id, rows) : topic_text(name, id, rows));
  return ExitCode::ok;
}

}  // namespace

void create_topic(Cluster& cluster, const std::string& name, std::int32_t partitions,
                  const std::map<std::string, std::string>& configs) {
  // From this version on -1 means the cluster's default.
  constexpr std::int16_t default_replication_version = 4;
  const auto send = [&](Client& client) -> std::pair<std::int16_t, std::optional<std::string>> {
    const auto version = client.version<protocol::CreateTopicsRequest>();
    protocol::CreateTopicsRequest request;
    request.timeout_ms = request_timeout_ms;
    protocol::CreateTopicsRequest::Topic topic;
    topic.name = name;
    topic.num_partitions = partitions;
    topic.replication_factor = version >= default_replication_version ? -1 : 1;
    for (const auto& [key, value] : configs) topic.configs.push_back({key, value});
    request.topics.push_back(std::move(topic));
    const auto response = client.call<protocol::CreateTopicsResponse>(request);
    for (const auto& answer : response.topics)
      if (answer.error_code != 0) return {answer.error_code, answer.error_message};
    return {0, {}};
  };
  ask_controller(cluster, send, fmt::format("topic '{}' was not created", name));
}

std::string topic_text(const std::string& name, const std::string& id,
                       const std::vector<TopicPartitionRow>& rows) {
  const Table table({{"PARTITION", 10},
                     {"LEADER", 8},
                     {"LEADER-EPOCH", 13},
                     {"START-OFFSET", 15},
                     {"END-OFFSET", 15},
                     {"MIRROR", 30},
                     {"STATE", 0}});
  std::string text =
      fmt::format("Topic {}, id {}, {} partition(s)\n", name, id.empty() ? "-" : id, rows.size());
  text += table.header();
  for (const TopicPartitionRow& row : rows)
    text += table.row({std::to_string(row.partition), cell(row.leader), cell(row.leader_epoch),
                       cell(row.start_offset), cell(row.end_offset), row.mirror, row.mirror_state});
  return text;
}

std::string topic_json(const std::string& name, const std::string& id,
                       const std::vector<TopicPartitionRow>& rows) {
  const auto maybe = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  Json json;
  json.begin_object().field("topic", name).field("topicId", maybe(id));
  json.key("partitions").begin_array();
  for (const TopicPartitionRow& row : rows)
    json.begin_object()
        .field("partition", row.partition)
        .field("leader", row.leader)
        .field("leaderEpoch", row.leader_epoch)
        .field("startOffset", row.start_offset)
        .field("endOffset", row.end_offset)
        .field("mirror", maybe(row.mirror))
        .field("mirrorState", maybe(row.mirror_state))
        .end_object();
  return json.end_array().end_object().text() + "\n";
}

std::vector<Command> topic_commands() {
  return {
      {"topic create",
       "NAME",
       "Creates a topic.",
       {{"partitions", "N", "How many partitions. Default 1."},
        {"config", "KEY=VALUE", "A setting of the topic, as in Kafka.", false, true},
        bootstrap_option(),
        json_option()},
       "calque topic create orders --partitions 3 --config retention.ms=-1",
       create},
      {"topic delete",
       "NAME",
       "Deletes a topic and its records.",
       {bootstrap_option(), json_option()},
       "calque topic delete orders",
       remove},
      {"topic list",
       "",
       "Lists the topics.",
       {bootstrap_option(), json_option()},
       "calque topic list",
       list},
      {"topic describe",
       "NAME",
       "Shows partitions, leader epochs, offsets and mirror states.",
       {bootstrap_option(), json_option()},
       "calque topic describe orders",
       describe},
  };
}

}  // namespace tools
