// The questions that partitions have for their source before they fetch: who leads, where the log
// begins and ends, where an epoch ended, whether it mirrors from us. Those that come together go
// together: one Metadata, and per leader one OffsetForLeaderEpoch and two ListOffsets.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <utility>

#include "mirror/mirror_shard.h"
#include "protocol/base/check.h"

namespace mirror {
namespace {

// Bounds what one round asks; the rest goes in the next.
constexpr std::size_t round_max = 2000;

}  // namespace

// Asking anew did not help: the leader still refuses the fetch, or its data are still newer than
// what the metadata say of it. The broker that answers for the cluster may be behind.
bool MirrorShard::doubts_metadata(const AlignItem& item) {
  return item.driver->state().refusals > 1;
}

void MirrorShard::align(std::shared_ptr<PartitionDriver> driver, Ticket ticket, Align what) {
  if (stopping_) return;
  align_queue_.push_back({.driver = std::move(driver),
                          .ticket = ticket,
                          .what = what,
                          .leader = 0,
                          .answer = {},
                          .failure = {}});
  if (std::exchange(aligning_, true)) return;
  tasks_.spawn("mirror alignment", align_loop());
}

boost::asio::awaitable<void> MirrorShard::align_loop() {
  while (!stopping_ && !align_queue_.empty()) {
    // Let those come that are about to ask as well.
    co_await boost::asio::post(executor_, boost::asio::use_awaitable);
    std::vector<AlignItem> items = std::exchange(align_queue_, {});
    if (items.size() > round_max) {
      align_queue_.assign(std::make_move_iterator(items.begin() + round_max),
                          std::make_move_iterator(items.end()));
      items.resize(round_max);
    }
    // Some may not wait any more.
    std::erase_if(items,
                  [](const AlignItem& item) { return item.driver->state().ticket != item.ticket; });
    if (!items.empty()) co_await align_batch(std::move(items));
  }
  aligning_ = false;
}

boost::asio::awaitable<void> MirrorShard::align_batch(std::vector<AlignItem> items) {
  if (!client_) client_ = std::make_unique<SourceClient>(executor_, client_options());
  std::set<std::string> topics;
  for (AlignItem& item : items) {
    topics.insert(item.driver->topic());
    item.answer.ticket = item.ticket;
  }
  std::vector<std::string> names(topics.begin(), topics.end());
  if (std::ranges::any_of(items, doubts_metadata)) client_->ask_another();
  const auto metadata = co_await client_->metadata(std::move(names));
  if (stopping_) co_return;
  if (!metadata) {
    for (AlignItem& item : items)
      item.failure =
          Failed{item.ticket, failure_of(metadata.error()), client_->describe(metadata.error())};
    co_return settle(items);
  }
  brokers_ = metadata->brokers;
  find_leaders(*metadata, items);
  std::map<base::NodeId, std::vector<AlignItem*>> by_leader;
  for (AlignItem& item : items)
    if (!item.failure) by_leader[item.leader].push_back(&item);
  for (auto& [node, asking] : by_leader) {
    co_await ask_leader(node, asking);
    if (stopping_) co_return;
  }
  co_await ask_reverse(items);
  if (stopping_) co_return;
  settle(items);
}

void MirrorShard::find_leaders(const SourceMetadata& metadata,
                               std::vector<AlignItem>& items) const {
  std::map<std::string_view, const SourceMetadata::Topic*> topics;
  for (const auto& topic : metadata.topics) topics[topic.name] = &topic;
  for (AlignItem& item : items) {
    const auto fail = [&item](Failure failure, std::string text) {
      item.failure = Failed{item.ticket, failure, std::move(text)};
    };
    const base::TopicPartition id = item.driver->id();
    const auto found = topics.find(item.driver->topic());
    if (found == topics.end() || found->second->error != 0) {
      constexpr auto unknown =
          static_cast<std::int16_t>(protocol::ErrorCode::unknown_topic_or_partition);
      const base::Error error = kafka_error(found == topics.end() ? unknown : found->second->error);
      fail(failure_of(error), "of the topic " + error.message());
      continue;
    }
    const SourceMetadata::Topic& topic = *found->second;
    const std::optional<base::Uuid> remembered = item.driver->source_id();
    if (!is_same_topic(id.topic_id, remembered, topic.id)) {
      fail(Failure::topic_recreated,
           fmt::format("the source topic was deleted and created anew: its id is {}, the copy is "
                       "of {}",
                       topic.id.to_string(), remembered.value_or(id.topic_id).to_string()));
      continue;
    }
    const auto index = static_cast<std::size_t>(id.partition);
    if (index >= topic.partitions.size()) {
      fail(Failure::source_error, "the source does not show the partition");
      continue;
    }
    const SourceMetadata::Partition& partition = topic.partitions[index];
    if (!partition.leader) {
      const base::Error error = SourceErrc::no_leader;
      fail(failure_of(error), error.message());
      continue;
    }
    item.leader = *partition.leader;
    // An id that is seen for the first time proves nothing.
    item.answer.same_topic_id = topic.id == remembered.value_or(id.topic_id) && !topic.id.is_zero();
    item.answer.source_epoch = partition.leader_epoch;
    item.driver->set_leader({*partition.leader, partition.leader_epoch}, topic.id);
  }
}

boost::asio::awaitable<void> MirrorShard::ask_leader(base::NodeId node,
                                                     std::vector<AlignItem*> items) {
  const auto question = [](const AlignItem& item) {
    return PartitionQuestion{.topic = item.driver->topic(),
                             .partition = item.driver->id().partition,
                             .current_epoch = item.answer.source_epoch,
                             .asked_epoch = item.what.epoch};
  };
  using Take = void (*)(AlignItem&, const PartitionAnswer&);
  const auto take_all = [this](const std::vector<AlignItem*>& asked,
                               const base::Result<std::vector<PartitionAnswer>>& answers,
                               const char* what, Take take) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      AlignItem& item = *asked[i];
      const base::Error error = !answers                   ? answers.error()
                                : (*answers)[i].error != 0 ? kafka_error((*answers)[i].error)
                                                           : base::Error();
      if (!error)
        take(item, (*answers)[i]);
      else if (!item.failure)
        item.failure = Failed{item.ticket, failure_of(error),
                              fmt::format("{}: {}", what, client_->describe(error))};
    }
  };
  std::vector<PartitionQuestion> all, with_epoch;
  std::vector<AlignItem*> with_epoch_items;
  for (AlignItem* item : items) {
    all.push_back(question(*item));
    if (!item->what.epoch) continue;
    with_epoch.push_back(question(*item));
    with_epoch_items.push_back(item);
  }
  const auto earliest = co_await client_->offsets(node, OffsetSpec::earliest, all);
  take_all(items, earliest, "its log start", [](AlignItem& item, const PartitionAnswer& answer) {
    item.answer.source_log_start = answer.offset.value_or(0);
  });
  if (!earliest) co_return;
  const auto latest = co_await client_->offsets(node, OffsetSpec::latest, all);
  take_all(items, latest, "its log end", [](AlignItem& item, const PartitionAnswer& answer) {
    item.answer.source_log_end = answer.offset.value_or(0);
  });
  if (!latest || with_epoch.empty()) co_return;
  const auto ends = co_await client_->epoch_ends(node, with_epoch);
  take_all(with_epoch_items, ends, "the end of an epoch",
           [](AlignItem& item, const PartitionAnswer& answer) {
             if (answer.epoch && answer.offset)
               item.answer.epoch_end = EpochEnd{*answer.epoch, *answer.offset};
           });
}

boost::asio::awaitable<void> MirrorShard::ask_reverse(std::vector<AlignItem>& items) {
  std::set<std::string> topics;
  for (const AlignItem& item : items)
    if (!item.failure && item.what.look_up_reverse) topics.insert(item.driver->topic());
  if (topics.empty()) co_return;
  std::vector<std::string> names(topics.begin(), topics.end());
  const auto reverse =
      co_await client_->reverse_mirrors(settings_->our_cluster_id, std::move(names));
  for (AlignItem& item : items) {
    if (item.failure || !item.what.look_up_reverse) continue;
    if (!reverse) {
      item.failure = Failed{item.ticket, failure_of(reverse.error()),
                            "its mirrors: " + client_->describe(reverse.error())};
      continue;
    }
    if (!reverse->supported) continue;  // Reverse::unsupported from the start
    item.answer.reverse = Reverse::none;
    const auto found =
        reverse->partitions.find({item.driver->topic(), item.driver->id().partition});
    if (found == reverse->partitions.end()) continue;
    item.answer.reverse = found->second.reverse;
    item.answer.reverse_position = found->second.position;
  }
}

void MirrorShard::settle(std::vector<AlignItem>& items) {
  for (AlignItem& item : items) {
    if (item.driver->state().ticket != item.ticket) continue;
    if (item.failure)
      item.driver->handle(*item.failure);
    else
      item.driver->handle(item.answer);
  }
}

}  // namespace mirror
