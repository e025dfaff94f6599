#include "broker/error.h"

#include <boost/system/error_category.hpp>
#include <string>

namespace broker {
namespace {

const char* text(BrokerErrc error) {
  switch (error) {
    case BrokerErrc::unknown_topic:
      return "there is no such topic";
    case BrokerErrc::unknown_topic_id:
      return "there is no topic of this id";
    case BrokerErrc::topic_exists:
      return "the topic exists";
    case BrokerErrc::topic_id_in_use:
      return "another topic has this id";
    case BrokerErrc::inconsistent_topic_id:
      return "the topic has another id";
    case BrokerErrc::invalid_topic_name:
      return "a topic name has 1 to 249 letters, digits, dots, underscores and hyphens, and is "
             "neither . nor ..";
    case BrokerErrc::invalid_partition_count:
      return "the number of partitions is not possible";
    case BrokerErrc::not_here:
      return "the partition is not open on this broker";
    case BrokerErrc::not_settled:
      return "the partition is about to be handed over by its mirror";
    case BrokerErrc::read_only:
      return "the topic is a copy kept by a mirror";
    case BrokerErrc::mirror_not_stopped:
      return "the topic belongs to a mirror; stop it there first";
    case BrokerErrc::unknown_mirror:
      return "there is no such mirror";
    case BrokerErrc::busy:
      return "a concurrent change came first";
    case BrokerErrc::fenced_leader_epoch:
      return "the leader epoch is older than the partition's";
    case BrokerErrc::unknown_leader_epoch:
      return "the leader epoch is newer than the partition's";
    case BrokerErrc::not_a_replica:
      return "this broker has no followers";
    case BrokerErrc::negative_limit:
      return "a limit of bytes is below zero";
    case BrokerErrc::transaction_unknown:
      return "the partition is not in the transaction";
    case BrokerErrc::stopping:
      return "the broker is going down";
  }
  return "unknown error of the broker";
}

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "broker"; }
  std::string message(int code) const override { return text(static_cast<BrokerErrc>(code)); }
};

}  // namespace

const boost::system::error_category& broker_category() {
  static const Category category;
  return category;
}

}  // namespace broker
