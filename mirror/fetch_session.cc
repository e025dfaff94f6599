#include "mirror/fetch_session.h"

#include <algorithm>
#include <utility>

#include "protocol/error_code.h"

namespace mirror {

void FetchSession::want(FetchWish wish, FetchClient* client) {
  const Place place{wish.topic, wish.partition};
  auto& topic = topics_[wish.topic];
  if (topic.name.empty()) topic.name = wish.topic;
  const auto found = topic.partitions.find(wish.partition);
  if (found != topic.partitions.end()) {
    if (found->second.wish.source_topic_id.is_zero()) --without_id_;
    // A topic under another id is another partition to the source.
    if (found->second.wish.source_topic_id != wish.source_topic_id && found->second.known) {
      forget(found->second);
      found->second.known = false;
    }
  } else {
    ++size_;
  }
  if (wish.source_topic_id.is_zero()) ++without_id_;
  topic.id = wish.source_topic_id;
  if (!topic.id.is_zero()) names_[topic.id] = topic.name;
  // The source still has it in its session; naming it again is enough.
  if (const auto gone = forgotten_.find(place);
      gone != forgotten_.end() && gone->second == topic.id)
    forgotten_.erase(gone);
  Entry& entry = topic.partitions[wish.partition];
  entry.wish = std::move(wish);
  entry.client = client;
  entry.asked = false;
  changed_.insert(place);
}

void FetchSession::forget(const Entry& entry) {
  forgotten_[{entry.wish.topic, entry.wish.partition}] = entry.wish.source_topic_id;
}

void FetchSession::drop(const std::string& name, std::int32_t partition) {
  const auto topic = topics_.find(name);
  if (topic == topics_.end()) return;
  const auto found = topic->second.partitions.find(partition);
  if (found == topic->second.partitions.end()) return;
  if (found->second.known) forget(found->second);
  if (found->second.wish.source_topic_id.is_zero()) --without_id_;
  --size_;
  changed_.erase({name, partition});
  topic->second.partitions.erase(found);
  if (!topic->second.partitions.empty()) return;
  names_.erase(topic->second.id);
  topics_.erase(topic);
}

void FetchSession::drop_if_answered(const std::string& name, std::int32_t partition) {
  const auto topic = topics_.find(name);
  if (topic == topics_.end()) return;
  const auto found = topic->second.partitions.find(partition);
  if (found != topic->second.partitions.end() && found->second.asked) drop(name, partition);
}

void FetchSession::clear() {
  topics_.clear();
  names_.clear();
  size_ = without_id_ = 0;
  reset();
}

void FetchSession::reset() {
  abandon();
  for (auto& [name, topic] : topics_)
    for (auto& [partition, entry] : topic.partitions) entry.asked = false;
}

// The next request is a full one; what was asked may still be answered.
void FetchSession::abandon() {
  id_ = epoch_ = 0;
  changed_.clear();
  forgotten_.clear();
  for (auto& [name, topic] : topics_)
    for (auto& [partition, entry] : topic.partitions) {
      entry.known = false;
      changed_.emplace(name, partition);
    }
}

void FetchSession::add_to(protocol::FetchRequest& request,
                          std::map<std::string, std::size_t>& places, Entry& entry) const {
  const FetchWish& wish = entry.wish;
  const auto [place, is_new] = places.try_emplace(wish.topic, request.topics.size());
  if (is_new) {
    auto& topic = request.topics.emplace_back();
    topic.topic = wish.topic;
    topic.topic_id = wish.source_topic_id;
  }
  auto& partition = request.topics[place->second].partitions.emplace_back();
  partition.partition = wish.partition;
  partition.fetch_offset = wish.offset;
  partition.log_start_offset = wish.log_start;
  partition.current_leader_epoch = wish.source_epoch.value_or(-1);
  partition.last_fetched_epoch = wish.last_epoch.value_or(-1);
  partition.partition_max_bytes = partition_max_bytes_;
  entry.known = entry.asked = true;
}

// The source fills its answer in the order of the request, so each full request begins elsewhere.
void FetchSession::fill_all(protocol::FetchRequest& request) {
  std::map<std::string, std::size_t> places;
  for (auto& [name, topic] : topics_)
    for (auto& [partition, entry] : topic.partitions) add_to(request, places, entry);
  if (request.topics.empty()) return;
  const std::size_t turn = rotation_++;
  const auto begin_at = [](auto& list, std::size_t at) {
    std::ranges::rotate(list, list.begin() + static_cast<std::ptrdiff_t>(at % list.size()));
  };
  // Within a topic the turn comes on once all topics have been first.
  for (auto& topic : request.topics) begin_at(topic.partitions, turn / request.topics.size());
  begin_at(request.topics, turn);
}

void FetchSession::fill_changes(protocol::FetchRequest& request) {
  std::map<std::string, std::size_t> places;
  for (const auto& [name, partition] : changed_)
    add_to(request, places, topics_.at(name).partitions.at(partition));
  for (const auto& [place, topic_id] : forgotten_) {
    auto& topic = request.forgotten_topics_data.emplace_back();
    topic.topic = place.first;
    topic.topic_id = topic_id;
    topic.partitions.push_back(place.second);
  }
}

void FetchSession::fill(protocol::FetchRequest& request, bool by_id) {
  if (by_id != by_id_) reset();  // the source takes names and ids in one session for an error
  by_id_ = by_id;
  request.session_id = id_;
  request.session_epoch = epoch_;
  if (id_ == 0)
    fill_all(request);
  else
    fill_changes(request);
  changed_.clear();
  forgotten_.clear();
}

bool FetchSession::accept(const protocol::FetchResponse& response) {
  if (response.error_code != 0) {
    reset();
    return false;
  }
  if (response.session_id == 0 || (id_ != 0 && response.session_id != id_)) {
    abandon();  // refused: its cache is full. The data counts all the same
    return true;
  }
  id_ = response.session_id;
  epoch_ = epoch_ == INT32_MAX ? 1 : epoch_ + 1;
  return true;
}

FetchSession::Entry* FetchSession::find(const protocol::FetchResponse::Response& response,
                                        std::int32_t partition) {
  auto topic = topics_.end();
  if (by_id_) {
    const auto name = names_.find(response.topic_id);
    if (name == names_.end()) return nullptr;
    topic = topics_.find(name->second);
  } else {
    topic = topics_.find(response.topic);
  }
  if (topic == topics_.end()) return nullptr;
  const auto entry = topic->second.partitions.find(partition);
  if (entry == topic->second.partitions.end() || !entry->second.asked) return nullptr;
  return &entry->second;
}

std::vector<FetchClient*> FetchSession::clients() const {
  std::vector<FetchClient*> all;
  for (const auto& [name, topic] : topics_)
    for (const auto& [partition, entry] : topic.partitions) all.push_back(entry.client);
  return all;
}

}  // namespace mirror
