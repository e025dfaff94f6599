// The transactional ids of one partition of __transaction_state: what each request does in each
// state.
#include "tests/unit/transactions/model_transactions.h"

using namespace broker::transactions;
using namespace broker::transactions::test;

namespace {

const Part p0{"t", 0}, p1{"t", 1};
constexpr std::int16_t v1 = classic_version, v2 = epoch_bump_version;

Producer next_epoch(Producer producer, int by = 1) {
  producer.epoch = static_cast<base::ProducerEpoch>(producer.epoch + by);
  return producer;
}

// Brings a transactional id to an epoch, as if that many producers had been there.
Producer at_epoch(Coordinator& c, const std::string& id, base::ProducerEpoch epoch) {
  Producer producer = c.made(id);
  while (producer.epoch < epoch) producer = c.made(id);
  return producer;
}

}  // namespace

TEST_CASE("a new transactional id gets a producer id, the next producer the next epoch") {
  Coordinator c;
  const Producer first = c.made("x");
  CHECK(first == Producer{1000, 0});
  CHECK(c.made("x") == Producer{1000, 1});
  CHECK(c.made("y") == Producer{1001, 0});
  CHECK(c.get("x").state == State::empty);
  CHECK(c.init("").error == ErrorCode::invalid_request);
  CHECK(c.init("x", {}, 0).error == ErrorCode::invalid_transaction_timeout);
  CHECK(c.init("x", {}, -1).error == ErrorCode::invalid_transaction_timeout);
  CHECK(c.init("x", {}, 900'001).error == ErrorCode::invalid_transaction_timeout);
  CHECK(c.init("x", {}, 900'000).error == ErrorCode::none);
}

TEST_CASE("a producer that goes on after an error tells what it has") {
  Coordinator c;
  const Producer first = c.made("x");
  CHECK(c.init("x", first).producer == next_epoch(first));
  // The same again: the answer was lost.
  CHECK(c.init("x", first).producer == next_epoch(first));
  CHECK(c.init("x", next_epoch(first)).producer == next_epoch(first, 2));
  // Somebody else came, so that there is nothing to go on with.
  c.made("x");
  CHECK(c.init("x", next_epoch(first, 2)).error == ErrorCode::producer_fenced);
  CHECK(c.init("x", next_epoch(first, 9)).error == ErrorCode::producer_fenced);
  CHECK(c.init("x", Producer{77, 3}).error == ErrorCode::producer_fenced);
  // An id that is forgotten: whatever it had.
  CHECK(c.init("y", Producer{77, 3}).producer == Producer{1001, 0});
}

TEST_CASE("a transaction of the first version commits with the epoch it has") {
  Coordinator c;
  const Producer producer = c.made("x");
  CHECK(c.add("x", producer, {p0}) == ErrorCode::none);
  CHECK(c.get("x").state == State::ongoing);
  CHECK(c.get("x").start_ms == c.now().wall_ms);
  const std::size_t records = c.log().size();
  CHECK(c.add("x", producer, {p0}) == ErrorCode::none);
  CHECK(c.log().size() == records);  // nothing new
  CHECK(c.add("x", producer, {p1}) == ErrorCode::none);
  CHECK(c.end("x", producer, true).error == ErrorCode::none);
  CHECK(c.get("x").state == State::prepare_commit);
  const auto ending = c.state().ending("x");
  REQUIRE(ending);
  CHECK(ending->commit);
  CHECK(ending->producer == producer);
  CHECK(ending->version == v1);
  CHECK(ending->partitions == Parts{p0, p1});
  // Until the markers are written nothing else can be done with it.
  CHECK(c.add("x", producer, {p0}) == ErrorCode::concurrent_transactions);
  CHECK(c.end("x", producer, true).error == ErrorCode::concurrent_transactions);
  CHECK(c.end("x", producer, false).error == ErrorCode::invalid_txn_state);
  CHECK(c.init("x").error == ErrorCode::concurrent_transactions);
  c.finish();
  CHECK(c.get("x").state == State::complete_commit);
  CHECK(c.get("x").partitions.empty());
  CHECK_FALSE(c.state().ending("x"));
  // Asked again, it is done; the other end is not.
  CHECK(c.end("x", producer, true).error == ErrorCode::none);
  CHECK(c.end("x", producer, false).error == ErrorCode::invalid_txn_state);
  CHECK(c.add("x", producer, {p0}) == ErrorCode::none);
  CHECK(c.end("x", producer, false).error == ErrorCode::none);
  c.finish();
  CHECK(c.get("x").state == State::complete_abort);
  CHECK(c.end("x", producer, false).error == ErrorCode::none);
  CHECK(c.end("x", producer, true).error == ErrorCode::invalid_txn_state);
}

TEST_CASE("in the second version each transaction has an epoch of its own") {
  Coordinator c;
  const Producer first = c.made("x");
  CHECK(c.add("x", first, {p0}, v2) == ErrorCode::none);
  const ProducerAnswer ended = c.end("x", first, true, v2);
  CHECK(ended.error == ErrorCode::none);
  CHECK(ended.producer == next_epoch(first));
  REQUIRE(c.state().ending("x"));
  CHECK(c.state().ending("x")->producer == next_epoch(first));
  CHECK(c.state().ending("x")->version == v2);
  CHECK(c.end("x", first, true, v2).error == ErrorCode::concurrent_transactions);
  CHECK(c.end("x", first, false, v2).error == ErrorCode::invalid_txn_state);
  CHECK(c.end("x", next_epoch(first), true, v2).error == ErrorCode::producer_fenced);
  c.finish();
  // The answer was lost: asked again with the epoch before.
  CHECK(c.end("x", first, true, v2).producer == next_epoch(first));
  CHECK(c.add("x", first, {p0}, v2) == ErrorCode::producer_fenced);
  const Producer second = ended.producer;
  // A commit of nothing is no use, an abort of nothing gives a new epoch.
  CHECK(c.end("x", second, true, v2).error == ErrorCode::invalid_txn_state);
  CHECK(c.end("x", second, false, v2).producer == next_epoch(second));
  c.finish();
  CHECK(c.get("x").state == State::complete_abort);
  CHECK(c.end("x", second, false, v2).producer == next_epoch(second));
  CHECK(c.end("x", next_epoch(second), false, v2).producer == next_epoch(second, 2));
  c.finish();
  const Producer fresh = c.made("x");
  CHECK(c.get("x").state == State::empty);
  CHECK(c.end("x", fresh, true, v2).error == ErrorCode::invalid_txn_state);
  CHECK(c.end("x", fresh, false, v2).producer == next_epoch(fresh));
}

TEST_CASE("with an epoch for each transaction an older one ends none") {
  Coordinator c;
  const Producer fenced = c.made("x");
  const Producer producer = c.made("x");
  for (const bool commit : {true, false}) {
    CHECK(c.end("x", fenced, commit, v2).error == ErrorCode::producer_fenced);
    REQUIRE(c.add("x", producer, {p0}, v2) == ErrorCode::none);
    CHECK(c.end("x", fenced, commit, v2).error == ErrorCode::producer_fenced);
    CHECK(c.end("x", next_epoch(producer), commit, v2).error == ErrorCode::producer_fenced);
    CHECK(c.get("x").state == State::ongoing);
  }
  CHECK(c.end("x", producer, true, v2).producer == next_epoch(producer));
  CHECK(c.end("x", fenced, true, v2).error == ErrorCode::producer_fenced);
  CHECK(c.end("x", next_epoch(producer), true, v2).error == ErrorCode::producer_fenced);
  c.finish();
  CHECK(c.end("x", fenced, true, v2).error == ErrorCode::producer_fenced);
  // The last one's epoch asks for its answer again only while no transaction was begun since.
  REQUIRE(c.add("x", next_epoch(producer), {p0}, v2) == ErrorCode::none);
  CHECK(c.end("x", producer, true, v2).error == ErrorCode::producer_fenced);
  CHECK(c.get("x").state == State::ongoing);
}

TEST_CASE("who is not the producer of the id is told so") {
  Coordinator c;
  const Producer producer = c.made("x");
  const Producer other{producer.id + 1, producer.epoch};
  for (const std::int16_t version : {v1, v2}) {
    CHECK(c.add("", producer, {p0}, version) == ErrorCode::invalid_request);
    CHECK(c.add("?", producer, {p0}, version) == ErrorCode::invalid_producer_id_mapping);
    CHECK(c.add("x", other, {p0}, version) == ErrorCode::invalid_producer_id_mapping);
    CHECK(c.add("x", next_epoch(producer), {p0}, version) == ErrorCode::producer_fenced);
    CHECK(c.end("", producer, true, version).error == ErrorCode::invalid_request);
    CHECK(c.end("?", producer, true, version).error == ErrorCode::invalid_producer_id_mapping);
    CHECK(c.end("x", other, true, version).error == ErrorCode::invalid_producer_id_mapping);
    CHECK(c.end("x", next_epoch(producer), true, version).error == ErrorCode::producer_fenced);
  }
  CHECK(c.end("x", producer, true).error == ErrorCode::invalid_txn_state);
  CHECK(c.end("x", producer, false).error == ErrorCode::invalid_txn_state);
}

TEST_CASE("partitions are looked for in the transaction that is open") {
  Coordinator c;
  const Producer producer = c.made("x");
  c.add("x", producer, {p0});
  const auto verify = [&](Producer who, const std::string& id = "x") {
    return c.state().verify({id, who, {p0, p1}, v1});
  };
  using Errors = std::vector<ErrorCode>;
  CHECK(verify(producer) == Errors{ErrorCode::none, ErrorCode::transaction_abortable});
  CHECK(verify(next_epoch(producer)) == Errors(2, ErrorCode::producer_fenced));
  CHECK(verify({7, 0}) == Errors(2, ErrorCode::invalid_producer_id_mapping));
  CHECK(verify(producer, "?") == Errors(2, ErrorCode::invalid_producer_id_mapping));
  CHECK(verify(producer, "") == Errors(2, ErrorCode::invalid_request));
  c.end("x", producer, true);
  CHECK(verify(producer) == Errors(2, ErrorCode::concurrent_transactions));
  c.finish();
  CHECK(verify(producer) == Errors(2, ErrorCode::transaction_abortable));
}

TEST_CASE("the next producer ends the transaction of the one before") {
  Coordinator c;
  const Producer zombie = c.made("x");
  c.add("x", zombie, {p0});
  CHECK(c.init("x").error == ErrorCode::concurrent_transactions);
  REQUIRE(c.state().ending("x"));
  CHECK_FALSE(c.state().ending("x")->commit);
  CHECK(c.state().ending("x")->producer == next_epoch(zombie));
  CHECK(c.end("x", zombie, true).error == ErrorCode::producer_fenced);
  c.finish();
  CHECK(c.end("x", zombie, true).error == ErrorCode::producer_fenced);
  CHECK(c.add("x", zombie, {p0}) == ErrorCode::producer_fenced);
  CHECK(c.init("x").producer == next_epoch(zombie, 2));
}

TEST_CASE("a transaction that runs too long is aborted") {
  Coordinator c;
  const Producer producer = c.made("x");
  c.add("x", producer, {p0});
  c.pass(5'000);
  c.add("x", producer, {p1});  // does not begin anew
  c.pass(4'999);
  CHECK(c.get("x").state == State::ongoing);
  c.pass(1);
  CHECK(c.get("x").state == State::prepare_abort);
  CHECK(c.state().next_deadline_ms() == std::nullopt);
  CHECK(c.end("x", producer, true).error == ErrorCode::producer_fenced);
  c.finish();
  CHECK(c.get("x").state == State::complete_abort);
  CHECK(c.get("x").producer == next_epoch(producer));
}

TEST_CASE("after a restart what is left of the time counts, and ends go on") {
  Coordinator c;
  const Producer producer = c.made("x");
  c.add("x", producer, {p0});
  c.made("y");
  c.add("y", {1001, 0}, {p0, p1});
  c.end("y", {1001, 0}, true);
  c.pass(6'000);
  c.restart();
  CHECK(c.owed() == std::vector<std::string>{"y"});
  CHECK(c.state().next_deadline_ms() == c.now().monotonic_ms + 4'000);
  c.finish();
  CHECK(c.get("y").state == State::complete_commit);
  c.pass(4'000);
  CHECK(c.owed() == std::vector<std::string>{"x"});
  // What had run too long before is aborted at once.
  c.finish();
  c.add("y", {1001, 0}, {p0});
  c.state();
  c.restart();
  c.pass(20'000);
  CHECK(c.get("y").state == State::prepare_abort);
}

TEST_CASE("a producer id whose epochs are used up is replaced") {
  SECTION("by the next producer") {
    Coordinator c;
    const Producer last = at_epoch(c, "x", epoch_exhausted);
    CHECK(last == Producer{1000, epoch_exhausted});
    const Producer rotated = c.init("x", last).producer;
    CHECK(rotated.epoch == 0);
    CHECK(rotated.id != last.id);
    CHECK(c.init("x", last).producer == rotated);  // the answer was lost
    CHECK(c.init("x", Producer{last.id, 5}).error == ErrorCode::producer_fenced);
  }
  SECTION("at the end of a transaction") {
    Coordinator c;
    const Producer last = at_epoch(c, "x", epoch_exhausted);
    c.add("x", last, {p0}, v2);
    const ProducerAnswer ended = c.end("x", last, true, v2);
    CHECK(ended.producer.epoch == 0);
    CHECK(ended.producer.id != last.id);
    REQUIRE(c.state().ending("x"));
    CHECK(c.state().ending("x")->producer == next_epoch(last));  // the markers are the old one's
    CHECK(c.end("x", last, true, v2).error == ErrorCode::concurrent_transactions);
    c.restart();
    c.finish();
    CHECK(c.get("x").producer == ended.producer);
    CHECK(c.end("x", last, true, v2).producer == ended.producer);
    CHECK(c.add("x", ended.producer, {p0}, v2) == ErrorCode::none);
  }
  SECTION("after a fence took the last epoch") {
    Coordinator c;
    const Producer last = at_epoch(c, "x", epoch_exhausted);
    c.add("x", last, {p0});
    CHECK(c.init("x").error == ErrorCode::concurrent_transactions);
    c.finish();
    const Producer fence = c.get("x").producer;
    CHECK(fence == next_epoch(last));
    CHECK(c.add("x", fence, {p0}) == ErrorCode::producer_fenced);  // nobody was told this one
    CHECK(c.end("x", fence, false, v2).error == ErrorCode::producer_fenced);
    const Producer next = c.made("x");
    CHECK(next.epoch == 0);
    CHECK(next.id != last.id);
  }
}

TEST_CASE("ids that are not used for long are forgotten") {
  Settings settings;
  settings.expiration_ms = 1'000'000;
  Coordinator c(settings);
  c.made("empty");
  const Producer open = c.init("open", {}, 900'000).producer;
  c.pass(600'000);
  c.add("open", open, {p0});
  const Producer done = c.made("done");
  c.add("done", done, {p0});
  c.end("done", done, true);
  c.finish();
  c.pass(400'000);
  c.clean();
  CHECK(c.state().describe("empty").error == ErrorCode::transactional_id_not_found);
  CHECK(c.get("open").state == State::ongoing);
  CHECK(c.get("done").state == State::complete_commit);
  c.pass(600'000);
  c.clean();
  CHECK(c.state().describe("done").error == ErrorCode::transactional_id_not_found);
  CHECK(c.get("open").state == State::prepare_abort);  // ran too long, and wants its markers
}

TEST_CASE("transactions are described and listed") {
  Coordinator c;
  const Producer x = c.made("x");
  c.add("x", x, {p0, p1});
  c.made("y");
  CHECK(c.state().describe("").error == ErrorCode::invalid_request);
  CHECK(c.state().describe("?").error == ErrorCode::transactional_id_not_found);
  CHECK(c.get("x").partitions == Parts{p0, p1});
  c.end("x", x, true);
  c.state().marked("x", x, p0);
  CHECK(c.get("x").partitions == Parts{p1});  // those without a marker
  c.pass(1'000);
  const auto named = [&](const Filter& filter) {
    std::string names;
    for (const Listed& one : c.state().list(filter, c.now())) names += one.transactional_id;
    return names;
  };
  CHECK(named({}) == "xy");
  CHECK(named({.states = {State::prepare_commit}}) == "x");
  CHECK(named({.states = {State::empty, State::prepare_commit}}) == "xy");
  CHECK(named({.producer_ids = {x.id}}) == "x");
  CHECK(named({.producer_ids = {5}}) == "");
  // A request may name very many, and the same again: looking for one is no search.
  const Filter again{.states = {State::empty, State::empty}, .producer_ids = {x.id, x.id}};
  CHECK((again.states.size() == 1 && again.producer_ids.size() == 1));
  CHECK(named({.no_state = true}) == "");
  CHECK(named({.duration_ms = 0}) == "xy");
  CHECK(named({.duration_ms = 999}) == "xy");
  CHECK(named({.duration_ms = 1'000}) == "y");  // y never began one
  CHECK(state_name(State::prepare_epoch_fence) == "PrepareEpochFence");
  CHECK(parse_state("CompleteAbort") == State::complete_abort);
  CHECK(parse_state("completeabort") == std::nullopt);
}

TEST_CASE("a transaction that does not fit into a record does not grow") {
  Settings settings;
  settings.record_bytes_max = 200;
  Coordinator c(settings);
  const Producer x = c.made("x");
  CHECK(c.add("x", x, {{std::string(300, 'a'), 0}}) == ErrorCode::unknown_server_error);
  CHECK(c.get("x").state == State::empty);
  CHECK(c.state().next_deadline_ms() == std::nullopt);
  CHECK(c.add("x", x, {p0}) == ErrorCode::none);
}

TEST_CASE("records that nobody can have meant are passed over") {
  TransactionShard state{Settings()};
  const base::Buffer key = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{'x'}};
  const base::Buffer other = {std::byte{0}, std::byte{7}, std::byte{0}, std::byte{1},
                              std::byte{'x'}};
  CHECK_FALSE(state.apply(other, std::nullopt));
  CHECK_FALSE(state.apply(base::Bytes(key).first(3), std::nullopt));
  CHECK(state.apply(key, std::nullopt));
  const base::Buffer nonsense(7);
  CHECK_FALSE(state.apply(key, base::Bytes(nonsense)));
  CHECK(state.size() == 0);
}
