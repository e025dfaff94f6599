#include "broker/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>

#include "broker/bounds.h"
#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/fault_log.h"
#include "broker/quotas.h"
#include "broker/work_meter.h"
#include "protocol/base/log.h"
#include "protocol/big_endian.h"

namespace broker {

namespace asio = boost::asio;

namespace {

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

}  // namespace

struct Connection::Charges {
  std::optional<Quota> produce, fetch, request;
  std::int64_t nanoseconds = 0;  // of a thread, that the handler took

  bool any() const { return produce || fetch || request; }
};

Connection::Charges Connection::charges_for(const Request& request) const {
  Charges charges;
  const ClientQuotas& quotas = broker_.quotas();
  if (!quotas.any(shard_)) return charges;
  const std::string client_id = request.header.client_id.value_or("");
  const auto find = [&](QuotaKind kind) {
    return quotas.find(shard_, kind, info_.user, client_id);
  };
  const auto key = static_cast<protocol::ApiKey>(request.header.api_key);
  if (key == protocol::ApiKey::produce) charges.produce = find(QuotaKind::produce);
  if (key == protocol::ApiKey::fetch) charges.fetch = find(QuotaKind::fetch);
  charges.request = find(QuotaKind::request);
  return charges;
}

Connection::Connection(Broker& broker, Shard& shard, Socket socket, ConnectionInfo info,
                       FaultLog& faults)
    : broker_(broker),
      shard_(shard),
      socket_(std::move(socket)),
      mute_timer_(socket_.get_executor()),
      info_(std::move(info)),
      faults_(faults) {
  enter(State::waiting);
}

base::Clock::time_point Connection::transfer_deadline(std::uint64_t bytes) {
  return base::Clock::now() + transfer_grace +
         std::chrono::seconds(bytes / transfer_bytes_per_second_min);
}

// Every state but `working` ends at a deadline; what a handler waits for has its own.
void Connection::enter(State state, std::uint64_t bytes) {
  state_ = state;
  const auto now = base::Clock::now();
  switch (state) {
    case State::waiting: {
      last_request_ = now;
      const std::int64_t idle_ms = broker_.config().connection_idle_max_ms();
      deadline_ = idle_ms < 0 ? base::Clock::time_point::max()
                              : now + std::chrono::milliseconds(std::min<std::int64_t>(
                                          idle_ms, std::numeric_limits<std::int32_t>::max()));
      break;
    }
    case State::working:
    case State::muted:
      deadline_ = base::Clock::time_point::max();
      break;
    case State::receiving:
      deadline_ = transfer_deadline(bytes);
      break;
  }
}

void Connection::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  mute_timer_.cancel();
}

bool Connection::between_requests() const {
  return state_ != State::working && owed_.empty();
}

void Connection::close_when_idle() {
  closing_ = true;
  if (between_requests()) close();
}

void Connection::sweep(base::Clock::time_point now) {
  if (now >= deadline_ || now >= send_deadline_) {
    close();
  } else if (state_ == State::waiting && input_.capacity() > 0 && input_.empty() && owed_.empty() &&
             now - last_request_ > buffer_idle_max) {
    give_back_ = true;  // a read uses the buffer
    boost::system::error_code ignored;
    socket_.cancel(ignored);
  }
}

void Connection::drop_buffer() {
  input_.drop();
  kept_.release();
}

asio::awaitable<void> Connection::serve() {
  try {
    while (!closing_ && co_await receive() && co_await handle()) {
    }
  } catch (const std::bad_alloc&) {
    base::logger("connection").error("{}: no memory for a request; connection closed", info_.peer);
  } catch (const std::exception& e) {
    base::logger("connection").error("{}: {}; connection closed", info_.peer, e.what());
  }
  share_.release();
  // What is owed refers to this connection, and was acknowledged by nobody yet.
  co_await until_owed_at_most(0);
  close();
}

bool Connection::is_allowed(std::int32_t announced) {
  if (announced > 0 && announced <= broker_.config().request_bytes_max()) return true;
  faults_.report(info_.peer, fmt::format("announces a request of {} bytes, it does not speak "
                                         "Kafka's protocol or socket.request.max.bytes is too "
                                         "small",
                                         announced));
  return false;
}

// Until a whole request is there.
asio::awaitable<bool> Connection::receive() {
  enter(State::waiting);
  for (;;) {
    if (const auto announced = input_.announced()) {
      if (!is_allowed(*announced)) co_return false;
      if (input_.whole()) co_return true;
      const auto size = static_cast<std::size_t>(*announced);
      if (!share_) {
        // Not reading is the back-pressure: the peer's socket fills up while others use the memory.
        enter(State::working);
        share_ = co_await shard_.budget().take(size);
        if (closing_) co_return false;
        enter(State::receiving, size);
      }
      const std::size_t needed = RequestBuffer::prefix_bytes + size;
      if (input_.capacity() < needed) kept_.release();
      input_.reserve(needed);
    }
    if (!co_await read_some()) co_return false;
  }
}

// Bytes beyond one request are read only into memory that is accounted for already.
asio::awaitable<bool> Connection::read_some() {
  give_back_ = false;
  const base::MutableBytes room = input_.room(bool{kept_});
  const auto target = asio::buffer(room.data(), room.size());
  const auto [error, count] = co_await socket_.async_read_some(target, no_throw);
  if (error) {
    if (!give_back_ || !socket_.is_open() || error != asio::error::operation_aborted)
      co_return false;
    drop_buffer();
    co_return true;
  }
  input_.add(count);
  if (kept_ && count == room.size()) read_further_ahead();
  co_return true;
}

// More has come than there was room for.
void Connection::read_further_ahead() {
  if (input_.capacity() >= read_ahead_bytes_max) return;
  const std::size_t more = std::min(2 * input_.capacity(), read_ahead_bytes_max);
  ByteBudget::Share larger = shard_.kept_buffers().try_take(more);
  if (!larger) return;
  input_.reserve(more);
  kept_ = std::move(larger);
}

// Takes the request at the front.
std::optional<Request> Connection::next_request() {
  const base::MutableBytes whole = input_.take();
  protocol::RequestHeader header;
  base::Bytes body;
  if (!protocol::decode(whole, header, body)) {
    faults_.report(info_.peer, "sent a request whose header does not parse");
    return std::nullopt;
  }
  if (find_handler(header.api_key, header.api_version) == nullptr) {
    faults_.report(info_.peer, fmt::format("asks for API {} version {}, which is not served",
                                           header.api_key, header.api_version));
    return std::nullopt;
  }
  size_ = whole.size();
  return Request{header, whole.subspan(whole.size() - body.size()), info_};
}

// Whether the next request came already and is of this API.
bool Connection::another_follows(std::int16_t api_key) {
  if (!input_.whole()) return false;
  const base::Bytes next = input_.front();
  return next.size() >= sizeof api_key && protocol::load_be<std::int16_t>(next.data()) == api_key &&
         is_allowed(static_cast<std::int32_t>(next.size()));
}

asio::awaitable<bool> Connection::handle() {
  enter(State::working);
  std::optional<Request> request = next_request();
  if (!request) co_return false;
  const protocol::RequestHeader header = request->header;
  const TogetherHandler together = find_together(header.api_key);
  Charges charges = charges_for(*request);
  if (together != nullptr && !charges.any())
    co_return co_await handle_together(together, std::move(*request));
  co_await until_owed_at_most(0);
  const Handler handler = find_handler(header.api_key, header.api_version);
  Response response = co_await run(handler, std::move(*request), charges);
  if (response.close && response.none) report_malformed(header.api_key, header.api_version);
  const bool closes = response.close;
  co_return co_await answer(std::move(response), charges) && !closes;
}

// With the requests behind the first that came already.
asio::awaitable<bool> Connection::handle_together(TogetherHandler handler, Request first) {
  const protocol::RequestHeader header = first.header;
  std::vector<Request> requests;
  requests.push_back(std::move(first));
  bool broken = false;
  // With quotas each is looked at: another client id may have one.
  const std::size_t most = broker_.quotas().any(shard_) ? 1 : requests_together_max;
  while (!broken && requests.size() < most && another_follows(header.api_key)) {
    if (auto next = next_request())
      requests.push_back(std::move(*next));
    else
      broken = true;
  }
  co_await until_owed_at_most(answers_owed_max - 1);
  std::vector<Response> responses = co_await handler(broker_, shard_, std::move(requests));
  const bool closes = responses.back().close;
  bool sent = true;
  if (responses.front().later || !owed_.empty()) {
    for (Response& one : responses) owe(std::move(one), header);
  } else {
    if (closes && responses.back().none) report_malformed(header.api_key, header.api_version);
    sent = co_await send_all(responses);
  }
  request_done();
  co_return sent && !closes && !broken;
}

void Connection::report_malformed(std::int16_t api_key, std::int16_t api_version) {
  faults_.report(info_.peer, fmt::format("sent a request of API {} version {} that does not "
                                         "parse, or wanted no answer to one that failed",
                                         api_key, api_version));
}

// Writes an answer after all that is owed, and sees to what the client is charged for it.
asio::awaitable<bool> Connection::answer(Response response, Charges& charges) {
  if (response.later) {
    auto waiting = response.later();
    response = std::move((co_await std::move(waiting)).front());
  }
  const auto throttle = co_await charge(charges, response);
  if (throttle.count() > 0 && response.throttle_time_at)
    protocol::store_be<std::int32_t>(response.bytes.data() + *response.throttle_time_at,
                                     static_cast<std::int32_t>(throttle.count()));
  if (!response.none && !co_await send(response)) co_return false;
  request_done();
  if (throttle.count() > 0) co_await mute(throttle);
  co_return true;
}

void Connection::request_done() {
  share_.release();
  if (!kept_) kept_ = shard_.kept_buffers().try_take(input_.capacity());
  if (!kept_) drop_buffer();
}

void Connection::owe(Response response, const protocol::RequestHeader& of) {
  owed_.push_back({std::move(response), of.api_key, of.api_version});
  if (owed_.size() == 1) asio::co_spawn(shard_.executor(), pay(), asio::detached);
}

// Writes what is owed, in order. serve() does not end before this has.
asio::awaitable<void> Connection::pay() {
  for (bool sent = true; !owed_.empty();) {
    sent = sent && co_await pay_next();
    if (!sent) close();  // the rest is owed to nobody; what it waits for goes on by itself
    owed_.pop_front();
    paid_.notify_all();
  }
  if (closing_ && between_requests()) close();
}

// False: it was the last.
asio::awaitable<bool> Connection::pay_next() {
  try {
    Owed& owed = owed_.front();  // stays where it is, whatever comes behind it
    std::vector<Response> responses;
    if (owed.response.later) {
      auto waiting = owed.response.later();
      responses = co_await std::move(waiting);
    } else {
      responses.push_back(std::move(owed.response));
    }
    const bool closes = responses.back().close;
    if (closes && responses.back().none) report_malformed(owed.api_key, owed.api_version);
    co_return co_await send_all(responses) && !closes;
  } catch (const std::exception& e) {
    base::logger("connection").error("{}: {}; connection closed", info_.peer, e.what());
    co_return false;
  }
}

asio::awaitable<void> Connection::until_owed_at_most(std::size_t count) {
  while (owed_.size() > count) co_await paid_.wait();
}

asio::awaitable<Response> Connection::run(Handler handler, Request request, Charges& charges) {
  if (charges.fetch) {
    // Clients that share the quota may have used it up meanwhile.
    for (auto waited = 0ms; waited < fetch_delay_max;) {
      const auto debt = co_await broker_.quotas().charge(QuotaKind::fetch, *charges.fetch, 0);
      if (debt.count() <= 0 || closing_) break;
      co_await mute(std::min<std::chrono::milliseconds>(debt, fetch_delay_max - waited));
      waited += debt;
    }
    enter(State::working);
    request.fetch_bytes_max = static_cast<std::int32_t>(
        std::min(broker_.quotas().window_amount(*charges.fetch),
                 static_cast<double>(std::numeric_limits<std::int32_t>::max())));
  }
  if (!charges.request) co_return co_await handler(broker_, shard_, std::move(request));
  const auto meter = std::make_shared<WorkMeter>();
  const MeteredExecutor<Shard::Executor> metered(shard_.executor(), meter);
  auto handled = handler(broker_, shard_, std::move(request));
  Response response = co_await asio::co_spawn(metered, std::move(handled), asio::use_awaitable);
  charges.nanoseconds = meter->nanoseconds;
  co_return response;
}

asio::awaitable<std::chrono::milliseconds> Connection::charge(Charges& charges,
                                                              const Response& response) {
  auto throttle = 0ms;
  ClientQuotas& quotas = broker_.quotas();
  if (charges.produce)
    throttle =
        co_await quotas.charge(QuotaKind::produce, *charges.produce, static_cast<double>(size_));
  if (charges.fetch)
    throttle = co_await quotas.charge(QuotaKind::fetch, *charges.fetch,
                                      static_cast<double>(response.size_bytes()));
  if (charges.request)
    throttle = std::max(throttle, co_await quotas.charge(QuotaKind::request, *charges.request,
                                                         static_cast<double>(charges.nanoseconds)));
  co_return throttle;
}

asio::awaitable<void> Connection::mute(std::chrono::milliseconds time) {
  if (closing_) co_return;
  enter(State::muted);
  mute_timer_.expires_after(time);
  co_await mute_timer_.async_wait(no_throw);
}

}  // namespace broker
