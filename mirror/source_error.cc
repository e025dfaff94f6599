#include "mirror/source_error.h"

#include "mirror/target.h"

namespace mirror {
namespace {

class SourceCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "source"; }
  std::string message(int value) const override {
    switch (static_cast<SourceErrc>(value)) {
      case SourceErrc::timed_out:
        return "the source did not answer in time";
      case SourceErrc::closed:
        return "the connection was closed here";
      case SourceErrc::no_broker:
        return "no broker of the source can be reached";
      case SourceErrc::no_leader:
        return "the partition has no leader at the source";
      case SourceErrc::unknown_broker:
        return "the partition's leader is not among the brokers that the source names";
      case SourceErrc::cluster_changed:
        return "the address leads to another cluster than the one this mirror copies";
      case SourceErrc::no_cluster_id:
        return "the source does not tell its cluster id";
      case SourceErrc::malformed:
        return "the source sent a response that does not decode";
      case SourceErrc::wrong_correlation:
        return "the source answered another request than ours";
      case SourceErrc::too_large:
        return "the source announced a response larger than is accepted";
      case SourceErrc::unsupported:
        return "the source does not serve a version of an API that mirroring needs";
    }
    return "unknown";
  }
};

class KafkaCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "kafka"; }
  std::string message(int value) const override {
    return "the source answered " +
           protocol::describe_error(static_cast<protocol::ErrorCode>(value));
  }
};

class TargetCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "target"; }
  std::string message(int value) const override {
    switch (static_cast<TargetErrc>(value)) {
      case TargetErrc::out_of_order:
        return "the batches do not begin where the log ends";
      case TargetErrc::epoch_above_leader:
        return "a batch's leader epoch is above the partition's";
      case TargetErrc::epoch_goes_back:
        return "a batch's leader epoch is below that of an earlier batch";
      case TargetErrc::corrupt_batch:
        return "a batch is damaged";
      case TargetErrc::storage_offline:
        return "the log directory is offline: see this broker's log, repair the disk and restart";
      case TargetErrc::no_space:
        return "the disk's reserve is reached";
      case TargetErrc::gone:
        return "the partition was deleted";
      case TargetErrc::already_exists:
        return "the topic exists already";
      case TargetErrc::id_mismatch:
        return "the topic exists here with another id";
      case TargetErrc::id_in_use:
        return "another topic here has the id";
      case TargetErrc::busy:
        return "something else was changed at the same time";
      case TargetErrc::group_has_members:
        return "the group has members here, so its offsets here are their own";
      case TargetErrc::group_refused:
        return "the group coordinator here did not write the offsets: see this broker's log";
      case TargetErrc::group_unavailable:
        return "the group coordinator here is not ready for it";
    }
    return "unknown";
  }
};

}  // namespace

const boost::system::error_category& source_category() {
  static const SourceCategory category;
  return category;
}

const boost::system::error_category& kafka_category() {
  static const KafkaCategory category;
  return category;
}

const boost::system::error_category& target_category() {
  static const TargetCategory category;
  return category;
}

// -1, UNKNOWN_SERVER_ERROR, is an error; only 0 is none.
base::Error kafka_error(std::int16_t number) {
  return {number, kafka_category()};
}

std::string describe_error(const base::Error& error, const std::string& remembered,
                           const std::string& found) {
  return error == SourceErrc::cluster_changed ? cluster_changed_text(remembered, found)
                                              : error.message();
}

Failure failure_of(const base::Error& error) {
  if (error.category() == source_category()) {
    switch (static_cast<SourceErrc>(error.value())) {
      case SourceErrc::cluster_changed:
        return Failure::cluster_changed;
      case SourceErrc::malformed:
      case SourceErrc::too_large:
      case SourceErrc::no_cluster_id:
        return Failure::source_error;
      case SourceErrc::unsupported:
        return Failure::unsupported;
      default:
        return Failure::source_unreachable;
    }
  }
  if (error.category() == kafka_category()) {
    switch (static_cast<protocol::ErrorCode>(error.value())) {
      case protocol::ErrorCode::leader_not_available:
      case protocol::ErrorCode::broker_not_available:
      // A leader that was just elected or started, before it and the metadata agree: it says
      // nothing of the partition yet, and the next metadata show when it can.
      case protocol::ErrorCode::not_leader_or_follower:
      case protocol::ErrorCode::replica_not_available:
      case protocol::ErrorCode::fenced_leader_epoch:
      case protocol::ErrorCode::unknown_leader_epoch:
      case protocol::ErrorCode::offset_not_available:
        return Failure::source_unreachable;
      case protocol::ErrorCode::corrupt_message:
        return Failure::corrupt_batch;
      case protocol::ErrorCode::unsupported_version:
        return Failure::unsupported;
      default:
        return Failure::source_error;
    }
  }
  if (error.category() == target_category())
    return static_cast<TargetErrc>(error.value()) == TargetErrc::corrupt_batch
               ? Failure::corrupt_batch
               : Failure::local_error;
  return Failure::source_unreachable;
}

}  // namespace mirror
