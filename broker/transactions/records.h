// The records of __transaction_state.
#pragma once
#include <string>
#include <string_view>

#include "broker/transactions/types.h"
#include "protocol/messages/transaction_log.gen.h"

namespace broker::transactions {

Record transaction_record(std::string_view transactional_id, const Transaction& transaction);
Record transaction_tombstone(std::string_view transactional_id);
// Nothing: a state that no record may have.
std::optional<Transaction> transaction_of(protocol::TransactionLogValue value);

}  // namespace broker::transactions
