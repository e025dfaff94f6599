#include "tools/mirror_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <ostream>

#include "protocol/messages/create_cluster_mirror.gen.h"
#include "protocol/messages/delete_cluster_mirror.gen.h"
#include "protocol/messages/describe_cluster.gen.h"
#include "protocol/messages/describe_configs.gen.h"
#include "protocol/messages/list_cluster_mirrors.gen.h"
#include "protocol/messages/pause_mirror_topics.gen.h"
#include "protocol/messages/recover_mirror_topics.gen.h"
#include "protocol/messages/resume_mirror_topics.gen.h"
#include "protocol/messages/start_mirror_topics.gen.h"
#include "protocol/messages/stop_mirror_topics.gen.h"
#include "tools/bootstrap.h"
#include "tools/client.h"
#include "tools/json.h"
#include "tools/mirror_report.h"
#include "tools/mirror_wait.h"
#include "tools/topic_words.h"

namespace tools {

namespace {

constexpr std::int64_t wait_seconds_max = 30 * 24 * 3600;
constexpr std::int64_t catch_up_seconds = 24 * 3600;
constexpr std::int64_t change_seconds = 300;
// The default of the KIP; a list of one's own is added to it, so that naming a topic to leave out
// does not bring internal ones in.
constexpr std::string_view internal_topics = "__.*";

Client connect(const Arguments& arguments) {
  return Client(bootstrap_of(arguments), "bootstrap-server");
}

struct TopicAnswer {
  std::string name;
  std::int16_t error_code = 0;
  std::optional<std::string> error_message;
};

// The answers of the topic commands, which differ in one field name.
template <class Response>
std::vector<TopicAnswer> topics_of(const Response& response) {
  std::vector<TopicAnswer> topics;
  for (const auto& topic : response.topics) {
    if constexpr (requires { topic.topic_name; }) {
      topics.push_back({topic.topic_name, topic.error_code, topic.error_message});
    } else {
      topics.push_back({topic.name, topic.error_code, topic.error_message});
    }
  }
  return topics;
}

template <class Response>
void check(const Response& response) {
  if (response.error_code != 0)
    throw Failure(ExitCode::failed, error_text(response.error_code, response.error_message));
}

// What one of the topic commands did, in words and as JSON.
struct Report {
  std::string mirror;
  std::string action;               // "stopped"
  std::string sentence;             // "Stopped mirroring for topics {} in mirror {}"
  std::vector<std::string> topics;  // done
  std::vector<TopicAnswer> refused;
};

template <class Response>
Report report_of(const Response& response, std::string mirror, std::string action) {
  Report report{std::move(mirror), std::move(action), {}, {}, {}};
  for (TopicAnswer& topic : topics_of(response)) {
    if (topic.error_code == 0) {
      report.topics.push_back(std::move(topic.name));
    } else {
      report.refused.push_back(std::move(topic));
    }
  }
  // Without a topic to blame it is the request as a whole that was refused.
  if (report.refused.empty()) check(response);
  return report;
}

void print(const Report& report, bool json, Output& output) {
  if (json) {
    Json line;
    line.begin_object().field("mirror", report.mirror).field("action", report.action);
    line.key("topics").begin_array();
    for (const std::string& topic : report.topics) line.value(topic);
    line.end_array().key("refused").begin_array();
    for (const TopicAnswer& topic : report.refused)
      line.begin_object()
          .field("topic", topic.name)
          .field("errorCode", topic.error_code)
          .field("errorMessage", topic.error_message)
          .end_object();
    output.out << line.end_array().end_object().text() << '\n';
    return;
  }
  output.out << report.sentence << '\n' << std::flush;
  for (const TopicAnswer& topic : report.refused)
    output.err << fmt::format("calque: '{}': {}\n", topic.name,
                              error_text(topic.error_code, topic.error_message));
}

ExitCode finish(const Arguments& arguments, const Report& report, Aim aim,
                std::int64_t default_seconds, Output& output) {
  print(report, arguments.flag("json"), output);
  if (arguments.flag("wait") && !report.topics.empty()) {
    Wait wait;
    wait.mirror = report.mirror;
    wait.topics = {report.topics.begin(), report.topics.end()};
    wait.aim = aim;
    wait.timeout =
        std::chrono::seconds(arguments.number("timeout", default_seconds, 1, wait_seconds_max));
    wait_for_mirror(bootstrap_of(arguments), wait, output);
  }
  return report.refused.empty() ? ExitCode::ok : ExitCode::failed;
}

std::string listed(const std::vector<std::string>& topics) {
  return fmt::format("[{}]", fmt::join(topics, ", "));
}

ExitCode create(const Arguments& arguments, Output& output) {
  const std::string& mirror = arguments.positional;
  std::string source;
  for (const Address& address : parse_addresses(*arguments.text("source"), "source"))
    source += (source.empty() ? "" : ",") + address.to_string();
  auto configs = arguments.pairs("config");
  configs["bootstrap.servers"] = source;
  configs["topics.include"] = fmt::format("{}", fmt::join(arguments.list("topics"), ","));
  if (const auto exclude = arguments.list("exclude"); !exclude.empty())
    configs["topics.exclude"] = fmt::format("{},{}", internal_topics, fmt::join(exclude, ","));
  if (const auto groups = arguments.list("groups"); !groups.empty())
    configs["groups.include"] = fmt::format("{}", fmt::join(groups, ","));
  if (const auto groups = arguments.list("exclude-groups"); !groups.empty())
    configs["groups.exclude"] = fmt::format("{}", fmt::join(groups, ","));
  protocol::CreateClusterMirrorRequest request;
  request.mirror_name = mirror;
  for (const auto& [name, value] : configs) request.config.push_back({name, value});
  {
    Client client = connect(arguments);
    check(client.call_version<protocol::CreateClusterMirrorResponse>(request, 0));
  }
  if (arguments.flag("json")) {
    Json line;
    line.begin_object().field("mirror", mirror).field("action", "created").end_object();
    output.out << line.text() << '\n' << std::flush;
  } else {
    output.out << fmt::format("Created mirror {}\n", mirror) << std::flush;
  }
  if (!arguments.flag("wait")) return ExitCode::ok;
  Wait wait;
  wait.mirror = mirror;
  wait.aim = Aim::caught_up;
  wait.timeout =
      std::chrono::seconds(arguments.number("timeout", catch_up_seconds, 1, wait_seconds_max));
  wait_for_mirror(bootstrap_of(arguments), wait, output);
  return ExitCode::ok;
}

ExitCode start(const Arguments& arguments, Output& output) {
  protocol::StartMirrorTopicsRequest request;
  request.mirror_name = arguments.positional;
  auto words = split_topic_words(arguments.list("topics"));
  for (std::string& name : words.names) request.topics.push_back({{}, std::move(name), 0});
  request.include_patterns = std::move(words.patterns);
  request.exclude_patterns = arguments.list("exclude");
  Client client = connect(arguments);
  Report report = report_of(client.call_version<protocol::StartMirrorTopicsResponse>(request, 0),
                            request.mirror_name, "started");
  report.sentence =
      report.topics.empty()
          ? "No topic matches yet; the patterns are kept, and topics that come later are mirrored"
          : fmt::format("Started {} mirror topic(s) in mirror {}: {}", report.topics.size(),
                        report.mirror, listed(report.topics));
  return finish(arguments, report, Aim::caught_up, catch_up_seconds, output);
}

ExitCode stop(const Arguments& arguments, Output& output) {
  protocol::StopMirrorTopicsRequest request;
  request.mirror_name = arguments.positional;
  auto words = split_topic_words(arguments.list("topics"));
  for (std::string& name : words.names) request.topics.push_back({std::move(name)});
  request.patterns = std::move(words.patterns);
  Client client = connect(arguments);
  Report report = report_of(client.call_version<protocol::StopMirrorTopicsResponse>(request, 0),
                            request.mirror_name, "stopped");
  report.sentence = fmt::format("Stopped mirroring for topics {} in mirror {}",
                                listed(report.topics), report.mirror);
  return finish(arguments, report, Aim::writable, change_seconds, output);
}

// Pause, resume and recover: names and patterns travel in one list.
template <class Request, class Response>
ExitCode change(const Arguments& arguments, Output& output, std::string_view verb,
                std::string action, Aim aim) {
  Request request;
  request.mirror_name = arguments.positional;
  for (std::string& word : arguments.list("topics")) request.topics.push_back({std::move(word)});
  Client client = connect(arguments);
  Report report =
      report_of(client.call_version<Response>(request, 0), request.mirror_name, std::move(action));
  report.sentence = fmt::format("{} mirroring for {} topic(s) in mirror {}: {}", verb,
                                report.topics.size(), report.mirror, listed(report.topics));
  return finish(arguments, report, aim, change_seconds, output);
}

ExitCode pause(const Arguments& arguments, Output& output) {
  return change<protocol::PauseMirrorTopicsRequest, protocol::PauseMirrorTopicsResponse>(
      arguments, output, "Paused", "paused", Aim::paused);
}

ExitCode resume(const Arguments& arguments, Output& output) {
  return change<protocol::ResumeMirrorTopicsRequest, protocol::ResumeMirrorTopicsResponse>(
      arguments, output, "Resumed", "resumed", Aim::mirroring);
}

ExitCode recover(const Arguments& arguments, Output& output) {
  return change<protocol::RecoverMirrorTopicsRequest, protocol::RecoverMirrorTopicsResponse>(
      arguments, output, "Recovered", "recovered", Aim::mirroring);
}

ExitCode remove(const Arguments& arguments, Output& output) {
  protocol::DeleteClusterMirrorRequest request;
  request.mirror_name = arguments.positional;
  Client client = connect(arguments);
  check(client.call_version<protocol::DeleteClusterMirrorResponse>(request, 0));
  if (arguments.flag("json")) {
    Json line;
    line.begin_object().field("mirror", request.mirror_name).field("action", "deleted");
    output.out << line.end_object().text() << '\n';
  } else {
    output.out << fmt::format("Deleted mirror {}\n", request.mirror_name);
  }
  return ExitCode::ok;
}

ExitCode list(const Arguments& arguments, Output& output) {
  protocol::ListClusterMirrorsRequest request;
  request.include_topic_names = true;
  // All of them: a mirror after its failover is still one.
  request.state_filter = {"MIRRORING", "PAUSED", "STOPPED"};
  Client client = connect(arguments);
  const auto response = client.call_version<protocol::ListClusterMirrorsResponse>(request, 0);
  check(response);
  output.out << (arguments.flag("json") ? mirror_list_json(response) : mirror_list_text(response));
  return ExitCode::ok;
}

// After how many attempts the broker gives up.
std::int64_t attempts_max(Client& client) {
  constexpr std::int64_t fallback = 20;
  protocol::DescribeClusterRequest ask;
  const auto cluster = client.call<protocol::DescribeClusterResponse>(ask);
  if (cluster.brokers.empty()) return fallback;
  constexpr std::int8_t broker_resource = 4;
  protocol::DescribeConfigsRequest request;
  request.resources.push_back({broker_resource, std::to_string(cluster.brokers[0].broker_id),
                               std::vector<std::string>{"mirror.failed.retry.max.attempts"}});
  const auto response = client.call<protocol::DescribeConfigsResponse>(request);
  for (const auto& result : response.results)
    for (const auto& config : result.configs)
      if (config.value) return std::stoll(*config.value);
  return fallback;
}

ExitCode describe_groups(const Arguments& arguments,
                         const protocol::DescribeClusterMirrorsResponse& response, Output& output) {
  const auto rows = groups_of(response);
  output.out << (arguments.flag("json") ? mirror_groups_json(rows) : mirror_groups_text(rows));
  for (const auto& mirror : response.mirrors)
    if (mirror.group_error)
      output.err << fmt::format("consumer groups of {}: {}\n", mirror.mirror_name,
                                *mirror.group_error);
  return ExitCode::ok;
}

ExitCode describe(const Arguments& arguments, Output& output) {
  Client client = connect(arguments);
  const auto response = describe_mirrors(client, arguments.positional, true);
  if (arguments.flag("groups")) return describe_groups(arguments, response, output);
  std::vector<PartitionRow> rows = rows_of(response);
  const bool failed_only = arguments.flag("failed");
  if (arguments.flag("json")) {
    if (failed_only) std::erase_if(rows, [](const PartitionRow& row) { return !row.failed(); });
    output.out << describe_json(rows);
    return ExitCode::ok;
  }
  output.out << (failed_only ? failed_text(rows, attempts_max(client)) : describe_text(rows));
  if (const auto groups = groups_of(response); !failed_only && !groups.empty())
    output.out << '\n' << mirror_groups_text(groups);
  for (const auto& mirror : response.mirrors)
    if (mirror.source_error)
      output.err << fmt::format("source of {} ({}): {}\n", mirror.mirror_name,
                                mirror.source_bootstrap.value_or(""), *mirror.source_error);
  return ExitCode::ok;
}

std::vector<Option> changing_options(std::vector<Option> own, std::string_view waits_for,
                                     std::string_view timeout) {
  own.push_back({"wait", "", waits_for});
  own.push_back({"timeout", "SECONDS", timeout});
  own.push_back(bootstrap_option());
  own.push_back(json_option());
  return own;
}

Option some_topics(std::string_view sentence) {
  return {"topics", "NAME-OR-REGEX[,…]", sentence, false, true};
}

constexpr std::string_view for_a_day = "How long --wait waits. Default 86400.";
constexpr std::string_view for_minutes = "How long --wait waits. Default 300.";

Command create_command() {
  return {
      "mirror create",
      "NAME",
      "Mirrors topics of another cluster, now and as they appear.",
      changing_options(
          {{"source", "HOST:PORT[,…]", "Brokers of the source cluster.", true},
           {"topics", "REGEX[,…]", "Topics to mirror; each must match a whole name.", true, true},
           {"exclude", "REGEX[,…]", "Topics to leave out, beside internal ones (__.*).", false,
            true},
           {"groups", "REGEX[,…]", "Consumer groups whose offsets are kept here. Default: all.",
            false, true},
           {"exclude-groups", "REGEX[,…]", "Groups to leave out.", false, true},
           {"config", "KEY=VALUE", "Any other setting of the mirror (see docs/cli.md).", false,
            true}},
          "Wait until every partition is MIRRORING with lag 0.", for_a_day),
      "calque mirror create m1 --source kafka1:9092 --topics 'orders.*' --wait",
      create};
}

}  // namespace

std::vector<Command> mirror_commands() {
  const auto caught_up = "Wait until every partition is MIRRORING with lag 0.";
  return {
      create_command(),
      {"mirror start", "NAME", "Starts topics that are stopped, or adds topics to the mirror.",
       changing_options({{"topics", "NAME-OR-REGEX[,…]", "Topics of the source.", true, true},
                         {"exclude", "REGEX[,…]", "Topics to leave out.", false, true}},
                        caught_up, for_a_day),
       "calque mirror start m1 --topics orders", start},
      {"mirror stop", "NAME",
       "Fails over: ends mirroring and makes the topics writable here, with or without a source.",
       changing_options({some_topics("Topics to fail over. Default: all of the mirror.")},
                        "Wait until every partition is writable.", for_minutes),
       "calque mirror stop m1 --wait", stop},
      {"mirror pause", "NAME", "Stops fetching; the topics stay read-only.",
       changing_options({some_topics("Topics to pause. Default: all of the mirror.")},
                        "Wait until every partition is PAUSED.", for_minutes),
       "calque mirror pause m1 --topics 'orders.*'", pause},
      {"mirror resume", "NAME", "Goes on with paused topics.",
       changing_options({some_topics("Topics to resume. Default: all of the mirror.")},
                        "Wait until every partition is MIRRORING.", for_minutes),
       "calque mirror resume m1 --topics 'orders.*' --wait", resume},
      {"mirror recover", "NAME", "Tries FAILED partitions again, now.",
       changing_options({some_topics("Topics to recover. Default: all of the mirror.")},
                        "Wait until every partition is MIRRORING.", for_minutes),
       "calque mirror recover m1", recover},
      {"mirror list",
       "",
       "Lists the mirrors.",
       {bootstrap_option(), json_option()},
       "calque mirror list",
       list},
      {"mirror describe",
       "[NAME]",
       "Shows offsets, lag and state of a mirror's partitions, and its consumer groups.",
       {{"failed", "", "Only FAILED partitions, with the reason."},
        {"groups", "", "Only the consumer groups whose offsets are kept here."},
        bootstrap_option(),
        json_option()},
       "calque mirror describe m1 --json",
       describe},
      {"mirror delete",
       "NAME",
       "Deletes a mirror whose topics are all stopped; the topics stay.",
       {bootstrap_option(), json_option()},
       "calque mirror delete m1",
       remove},
  };
}

}  // namespace tools
