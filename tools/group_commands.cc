#include "tools/group_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>

#include "tools/bootstrap.h"
#include "tools/group_client.h"
#include "tools/json.h"

namespace tools {

namespace {

using Place = std::pair<std::string, std::int32_t>;

ExitCode list_groups(const Arguments& arguments, Output& output) {
  GroupClient client(bootstrap_of(arguments));
  const auto rows = client.list();
  output.out << (arguments.flag("json") ? group_list_json(rows) : group_list_text(rows));
  return ExitCode::ok;
}

// Where the logs of these partitions begin and end; those that are gone stay without.
void add_log_ends(Cluster& cluster, std::map<Place, GroupPartitionRow>& rows) {
  std::map<std::string, std::optional<Cluster::Topic>> topics;
  for (auto& [place, row] : rows) {
    const auto [topic, is_new] = topics.try_emplace(row.topic);
    if (is_new) topic->second = cluster.topic(row.topic);
    if (!topic->second) continue;
    const auto& partitions = topic->second->partitions;
    const auto found = std::ranges::find(partitions, row.partition, &Cluster::Partition::index);
    if (found == partitions.end() || !found->leader) continue;
    row.log_start = cluster.offset_at(row.topic, row.partition, earliest_timestamp)->offset;
    row.log_end = cluster.offset_at(row.topic, row.partition, latest_timestamp)->offset;
  }
}

ExitCode describe_group(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.positional;
  GroupClient client(bootstrap_of(arguments));
  const GroupDetails group = client.describe(name);
  std::map<Place, GroupPartitionRow> rows;
  for (CommittedRow& committed : client.committed(name)) {
    GroupPartitionRow& row = rows[{committed.topic, committed.partition}];
    row.committed = std::move(committed);
  }
  for (const GroupMemberRow& member : group.members)
    for (const Place& place : member.partitions) rows[place].member = member.member;
  for (auto& [place, row] : rows) {
    row.topic = place.first;
    row.partition = place.second;
  }
  add_log_ends(client.cluster(), rows);
  std::vector<GroupPartitionRow> sorted;
  for (auto& [place, row] : rows) sorted.push_back(std::move(row));
  output.out << (arguments.flag("json") ? group_json(group, sorted) : group_text(group, sorted));
  return ExitCode::ok;
}

ExitCode delete_group(const Arguments& arguments, Output& output) {
  GroupClient client(bootstrap_of(arguments));
  client.remove(arguments.positional);
  if (arguments.flag("json")) {
    Json line;
    line.begin_object().field("group", arguments.positional).field("action", "deleted");
    output.out << line.end_object().text() << '\n';
  } else {
    output.out << fmt::format("Group {} deleted\n", arguments.positional);
  }
  return ExitCode::ok;
}

// ---- Reset.

struct ResetWish {
  ResetTo to = ResetTo::earliest;
  std::int64_t value = 0;  // offset, shift, or milliseconds since 1970
};

ResetWish wish_of(const Arguments& arguments) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::vector<ResetWish> wishes;
  if (arguments.flag("to-earliest")) wishes.push_back({ResetTo::earliest, 0});
  if (arguments.flag("to-latest")) wishes.push_back({ResetTo::latest, 0});
  if (arguments.flag("to-offset"))
    wishes.push_back({ResetTo::offset, arguments.number("to-offset", 0, 0, most)});
  if (const auto text = arguments.text("to-datetime"))
    wishes.push_back({ResetTo::datetime, parse_datetime(*text)});
  if (arguments.flag("shift-by"))
    wishes.push_back({ResetTo::shift, arguments.number("shift-by", 0, least, most)});
  if (wishes.size() != 1)
    throw Failure(ExitCode::usage,
                  "'calque group reset' needs exactly one of --to-earliest, --to-latest, "
                  "--to-offset, --to-datetime and --shift-by");
  if (arguments.flag("execute") && arguments.flag("dry-run"))
    throw Failure(ExitCode::usage, "--execute and --dry-run exclude each other; leave one out");
  return wishes[0];
}

// The partitions that are meant: those named, or all that the group committed.
std::vector<Place> partitions_meant(const Arguments& arguments, Cluster& cluster,
                                    const std::map<Place, base::Offset>& before) {
  std::vector<Place> places;
  for (const std::string& word : arguments.all("topic")) {
    const TopicScope scope = parse_scope(word);
    const auto topic = cluster.topic(scope.topic);
    if (!topic)
      throw Failure(
          ExitCode::failed,
          fmt::format("there is no topic '{}'; 'calque topic list' shows those that there are",
                      scope.topic));
    const auto count = static_cast<std::int32_t>(topic->partitions.size());
    for (const std::int32_t partition : scope.partitions) {
      if (partition >= count)
        throw Failure(ExitCode::failed, fmt::format("topic '{}' has {} partitions, and no {}",
                                                    scope.topic, count, partition));
      places.emplace_back(scope.topic, partition);
    }
    for (std::int32_t p = 0; scope.partitions.empty() && p < count; ++p)
      places.emplace_back(scope.topic, p);
  }
  if (arguments.flag("topic")) {
    std::ranges::sort(places);
    const auto repeated = std::ranges::unique(places);
    places.erase(repeated.begin(), repeated.end());
    return places;
  }
  for (const auto& [place, offset] : before)
    if (cluster.topic(place.first)) places.push_back(place);
  return places;
}

std::vector<ResetRow> plan_of(Cluster& cluster, const ResetWish& wish,
                              const std::vector<Place>& places,
                              const std::map<Place, base::Offset>& before, Output& output) {
  std::vector<ResetRow> rows;
  for (const auto& [topic, partition] : places) {
    const base::Offset start = cluster.offset_at(topic, partition, earliest_timestamp)->offset;
    const base::Offset end = cluster.offset_at(topic, partition, latest_timestamp)->offset;
    std::int64_t value = wish.value;
    if (wish.to == ResetTo::datetime) {
      const auto found = cluster.offset_at(topic, partition, wish.value);
      // Nothing is as new as that: the end.
      value = found && found->offset >= 0 ? found->offset : end;
    }
    std::optional<base::Offset> now;
    if (const auto known = before.find({topic, partition}); known != before.end())
      now = known->second;
    auto row = plan_reset(topic, partition, wish.to, value, now, start, end);
    if (!row) {
      output.err << fmt::format(
          "calque: '{}' partition {} has no committed offset to shift, and stays without\n", topic,
          partition);
      continue;
    }
    if (row->moved_into_log)
      output.err << fmt::format(
          "calque: '{}' partition {} holds offsets {} to {}, so it goes to {}\n", topic, partition,
          start, end, row->after);
    rows.push_back(std::move(*row));
  }
  return rows;
}

ExitCode reset_group(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.positional;
  const ResetWish wish = wish_of(arguments);
  GroupClient client(bootstrap_of(arguments));
  for (const GroupRow& row : client.list())
    if (row.group == name && !row.state.empty() && row.state != "Empty" && row.state != "Dead")
      throw Failure(ExitCode::failed,
                    fmt::format("group '{}' is {}: end its consumers before its offsets are reset",
                                name, row.state));
  std::map<Place, base::Offset> before;
  for (const CommittedRow& row : client.committed(name))
    before[{row.topic, row.partition}] = row.offset;
  if (before.empty() && !arguments.flag("topic"))
    throw Failure(
        ExitCode::failed,
        fmt::format("group '{}' has committed nothing; name the topics with --topic", name));
  const auto places = partitions_meant(arguments, client.cluster(), before);
  const auto rows = plan_of(client.cluster(), wish, places, before, output);
  const bool execute = arguments.flag("execute");
  if (execute && !rows.empty()) {
    std::vector<CommittedRow> offsets;
    for (const ResetRow& row : rows)
      offsets.push_back({row.topic, row.partition, row.after, std::nullopt, ""});
    client.commit(name, offsets);
  }
  if (arguments.flag("json")) {
    output.out << reset_json(name, rows, execute);
    return ExitCode::ok;
  }
  output.out << reset_text(rows);
  if (!execute && !rows.empty()) output.err << "Nothing was changed; add --execute to do it\n";
  return ExitCode::ok;
}

}  // namespace

std::vector<Command> group_commands() {
  return {
      {"group list",
       "",
       "Lists the groups of all brokers.",
       {bootstrap_option(), json_option()},
       "calque group list",
       list_groups},
      {"group describe",
       "GROUP",
       "Shows state, members of either protocol, committed offsets and lag.",
       {bootstrap_option(), json_option()},
       "calque group describe billing",
       describe_group},
      {"group reset",
       "GROUP",
       "Moves the committed offsets of a group without members.",
       {{"topic", "TOPIC[:PARTITION,…]",
         "Which partitions. Default: all in which the group has committed.", false, true},
        {"to-earliest", "", "To the oldest record."},
        {"to-latest", "", "Behind the newest record."},
        {"to-offset", "N", "To this offset."},
        {"to-datetime", "TIME", "To the first record as new as this: 2026-11-30T12:00:00Z."},
        {"shift-by", "N", "From where it is, forwards or (with -N) backwards."},
        {"dry-run", "", "Only show what would be done. The default."},
        {"execute", "", "Do it."},
        bootstrap_option(),
        json_option()},
       "calque group reset billing --topic orders:0,1 --shift-by -100 --execute",
       reset_group},
      {"group delete",
       "GROUP",
       "Deletes a group without members, with its committed offsets.",
       {bootstrap_option(), json_option()},
       "calque group delete billing",
       delete_group},
  };
}

}  // namespace tools
