#include "server/http/http_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "base/check.h"
#include "server/http/host_fault.h"
#include "server/http/http_session.h"
#include "server/http/http_socket.h"

namespace troupe {
namespace {

using http_internal::ErrorCode;
using http_internal::SocketWire;
using http_internal::Tcp;
using http_internal::TlsSocket;
namespace asio = boost::asio;

// Connections beyond the limit, each for a moment, so that whoever makes way is told why.
constexpr std::ptrdiff_t kMostLeaving = 16;

}  // namespace

class HttpServer::Impl final : public SessionOwner {
 public:
  Impl(const HttpServerOptions& options, HttpService service)
      : options_(options),
        service_(std::move(service)),
        body_bytes_(options.limits.body_bytes),
        memory_(std::make_shared<ByteBudget>(options.limits.all_body_bytes)),
        unread_(std::make_shared<UnreadPool>(options.limits.all_unread_bytes)),
        gate_(std::make_shared<IoGate>(
            [this](IoGate::Call call) { asio::post(io_, std::move(call)); })),
        small_bodies_(1),
        large_bodies_(1),
        farewells_(1) {}

  ~Impl() override {
    gate_->Shut();
    asio::post(io_, [this] { io_.stop(); });
    if (thread_.joinable()) thread_.join();
    for (asio::thread_pool* lane : {&small_bodies_, &large_bodies_}) {
      lane->stop();
      lane->join();
    }
    for (const auto& weak : sessions_) {
      if (const auto session = weak.lock()) session->Close();
    }
    farewells_.join();
  }

  Status Listen() {
    TROUPE_RETURN_IF_ERROR(LoadCertificate());
    ErrorCode error;
    Tcp::resolver resolver(io_);
    const auto found =
        resolver.resolve(options_.host, std::to_string(options_.port),
                         Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
    if (error) return InvalidArgument("{}", HostFault(options_.host, error));
    port_ = options_.port;
    ErrorCode absent;  // why an address of the name is not this machine's, as ::1 in a container
    std::set<asio::ip::address> addresses;  // a name may have one twice
    for (const auto& one : found) {
      if (!addresses.insert(one.endpoint().address()).second) continue;
      if (ListenAt({one.endpoint().address(), port_}, error)) continue;
      if (!IsAbsent(error)) return Unavailable(error);
      absent = error;
    }
    if (doors_.empty()) return Unavailable(absent);
    for (Door& door : doors_) Accept(door);
    thread_ = std::thread([this] { io_.run(); });
    return OkStatus();
  }

  void Handle(HttpRequest request, HttpReplyPtr reply) override {
    Count([](HttpCounters& counters) { ++counters.requests; });
    if (request.body.empty()) return HandleNow(std::move(request), std::move(reply));
    const bool is_small = request.body.size() <= kSmallBodyBytes;
    asio::post(is_small ? small_bodies_ : large_bodies_,
               [this, is_small, request = std::move(request), reply = std::move(reply)]() mutable {
                 if (is_small && handles_large_) {
                   Count([](HttpCounters& counters) { ++counters.overtook; });
                 }
                 if (!is_small) handles_large_ = true;
                 HandleNow(std::move(request), std::move(reply));
                 if (!is_small) handles_large_ = false;
               });
  }
  std::optional<HttpResponse> Refusal(const HttpRequest& head) override {
    if (!service_.refusal) return std::nullopt;
    return service_.refusal(head);
  }
  HttpResponse ErrorOf(int status, const std::string& message, const HttpRequest& head) override {
    if (service_.error) return service_.error(status, message, head);
    return {.status = status, .content_type = "text/plain", .body = message + "\n"};
  }
  void Elsewhere(std::function<void()> call) override { asio::post(farewells_, std::move(call)); }
  const std::shared_ptr<ByteBudget>& memory() const override { return memory_; }
  bool MakeRoomFor(const HttpSession& needy) override {
    const auto slowest = Slowest([](const HttpSession& one) { return one.HoldsRoom(); });
    if (slowest == nullptr || slowest.get() == &needy) return false;
    Count([](HttpCounters& counters) { ++counters.slow_bodies; });
    slowest->GiveWay();
    return true;
  }
  const std::shared_ptr<UnreadPool>& unread() const override { return unread_; }
  std::shared_ptr<IoGate> gate() const override { return gate_; }
  bool draining() const override { return draining_; }
  const HttpLimits& limits() const override { return options_.limits; }
  std::size_t body_bytes() const override { return body_bytes_; }
  void set_body_bytes(std::size_t most) { body_bytes_ = most; }
  void OnMalformed() override {
    Count([](HttpCounters& counters) { ++counters.malformed; });
  }
  void OnRefused() override {
    Count([](HttpCounters& counters) { ++counters.refused; });
  }
  void OnNoRoom() override {
    Count([](HttpCounters& counters) { ++counters.no_room; });
  }
  void OnTimedOut() override {
    Count([](HttpCounters& counters) { ++counters.timed_out; });
  }
  void OnTooSlow() override {
    Count([](HttpCounters& counters) { ++counters.too_slow; });
  }
  void OnTurnedAway() override {
    Count([](HttpCounters& counters) { ++counters.turned_away; });
  }
  void OnCutOff() override {
    Count([](HttpCounters& counters) { ++counters.cut_off; });
  }
  bool logs() const override { return service_.log != nullptr; }
  void OnEnded(const HttpEnded& ended) override { service_.log(ended); }

  bool Drain(std::chrono::milliseconds longest) {
    asio::post(io_, [this] {
      draining_ = true;
      ErrorCode ignored;
      for (Door& door : doors_) door.acceptor.close(ignored);
      Forget();
      for (const auto& weak : sessions_) {
        if (const auto session = weak.lock()) session->OnDrain();
      }
    });
    std::unique_lock lock(mu_);
    return none_left_.wait_for(lock, longest, [&] { return counters_.connections == 0; });
  }

  std::uint16_t port() const { return port_; }
  bool tls() const { return !options_.certificate.empty(); }
  std::optional<HttpCertificate> certificate() const {
    const std::lock_guard lock(mu_);
    return certificate_;
  }
  void set_certificate(const HttpCertificate& next) {
    const std::lock_guard lock(mu_);
    TROUPE_CHECK(certificate_.has_value());
    certificate_ = next;
  }
  const HttpServerOptions& options() const { return options_; }
  HttpCounters counters() const {
    const std::lock_guard lock(mu_);
    HttpCounters counters = counters_;
    if (certificate_) counters.certificate_expires = certificate_->expires();
    return counters;
  }

 private:
  template <typename Change>
  void Count(Change change) {
    const std::lock_guard lock(mu_);
    change(counters_);
  }

  void HandleNow(HttpRequest request, HttpReplyPtr reply) {
    try {
      service_.handle(std::move(request), std::move(reply));
    } catch (const std::exception&) {
      // Memory that there is not, say. The reply has been let go of, and answers with 500.
    }
  }

  Status LoadCertificate() {
    if (options_.certificate.empty() && options_.key.empty()) return OkStatus();
    TROUPE_ASSIGN_OR_RETURN(certificate_,
                            HttpCertificate::Read(options_.certificate, options_.key));
    return OkStatus();
  }

  // An address that it listens to: a name may have several.
  struct Door {
    explicit Door(asio::io_context& io) : acceptor(io), retry(io) {}
    Tcp::acceptor acceptor;
    asio::steady_timer retry;
  };

  Status Unavailable(const ErrorCode& why) const {
    return Error(Code::kUnavailable, "{}:{}: {}", options_.host, options_.port, why.message());
  }
  static bool IsAbsent(const ErrorCode& error) {
    return error == asio::error::address_family_not_supported ||
           error == boost::system::errc::address_not_available;
  }

  // Of port 0 the first address chooses one for all.
  bool ListenAt(const Tcp::endpoint& endpoint, ErrorCode& error) {
    Door door(io_);
    if (door.acceptor.open(endpoint.protocol(), error)) return false;
    door.acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (door.acceptor.bind(endpoint, error)) return false;
    if (door.acceptor.listen(asio::socket_base::max_listen_connections, error)) return false;
    port_ = door.acceptor.local_endpoint().port();
    doors_.push_back(std::move(door));
    return true;
  }

  void Accept(Door& door) {
    if (IsFull()) return MakeWay(door);
    AcceptNext(door);
  }

  void AcceptNext(Door& door) {
    door.acceptor.async_accept([this, &door](const ErrorCode& error, Tcp::socket socket) {
      if (!door.acceptor.is_open()) return;
      if (error) return AcceptLater(door);  // without descriptors it waits in the kernel
      Begin(std::move(socket));
      Accept(door);
    });
  }

  void AcceptLater(Door& door) {
    door.retry.expires_after(std::chrono::milliseconds(50));
    door.retry.async_wait([this, &door](const ErrorCode& error) {
      if (!error && door.acceptor.is_open()) Accept(door);
    });
  }

  // Whose request comes slowest of those that `counts` says yes to; null: none is slow.
  std::shared_ptr<HttpSession> Slowest(bool (*counts)(const HttpSession&)) const {
    std::shared_ptr<HttpSession> slowest;
    double least = options_.limits.body_pace;
    for (const auto& weak : sessions_) {
      auto session = weak.lock();
      const std::optional<double> pace = session ? session->Pace() : std::nullopt;
      if (!pace || *pace >= least || !counts(*session)) continue;
      slowest = std::move(session);
      least = *pace;
    }
    return slowest;
  }

  // Nobody is closed before another has come; where none is idle or slow, that one waits in the
  // kernel.
  void MakeWay(Door& door) {
    door.acceptor.async_wait(Tcp::acceptor::wait_read, [this, &door](const ErrorCode& error) {
      if (!door.acceptor.is_open()) return;
      if (error || (IsFull() && !CloseIdlest() && !CloseSlowest())) return AcceptLater(door);
      AcceptNext(door);
    });
  }

  // Whether there was one.
  bool CloseIdlest() {
    std::shared_ptr<HttpSession> idlest;
    std::optional<HttpSession::SteadyClock::time_point> since;
    for (const auto& weak : sessions_) {
      auto session = weak.lock();
      const auto idle = session ? session->IdleSince() : std::nullopt;
      if (!idle || (since && *since <= *idle)) continue;
      idlest = std::move(session);
      since = idle;
    }
    return SendAway(idlest);
  }

  // The same of those whose request comes slowly.
  bool CloseSlowest() {
    return SendAway(Slowest([](const HttpSession& one) { return !one.Answers(); }));
  }

  // False for none. One that is told why stays for a moment beside the others; where many do
  // already, it is closed without a word.
  bool SendAway(const std::shared_ptr<HttpSession>& session) {
    if (session == nullptr) return false;
    const auto leave = std::ranges::count_if(sessions_, [](const auto& weak) {
      const auto one = weak.lock();
      return one != nullptr && one->Leaves();
    });
    session->MakeWay(/*told=*/leave < kMostLeaving);
    Count([](HttpCounters& counters) { ++counters.made_way; });
    return true;
  }

  bool IsFull() const { return counters().connections >= options_.limits.connections; }

  void Begin(Tcp::socket socket) {
    ErrorCode ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    Count([](HttpCounters& counters) {
      ++counters.accepted;
      ++counters.connections;
    });
    if (const std::optional<HttpCertificate> shown = certificate()) {
      Keep(std::make_shared<SocketWire<TlsSocket>>(TlsSocket(std::move(socket), shown->context())));
    } else {
      Keep(std::make_shared<SocketWire<Tcp::socket>>(std::move(socket)));
    }
  }

  void Keep(std::shared_ptr<HttpWire> wire) {
    auto* const made = new HttpSession(std::move(wire), *this);
    const std::shared_ptr<HttpSession> session(made, [this](const HttpSession* gone) {
      delete gone;
      const std::lock_guard lock(mu_);
      if (--counters_.connections == 0) none_left_.notify_all();
    });
    if (sessions_.size() >= 2 * counters().connections + 16) Forget();
    sessions_.push_back(session);
    session->Start();
  }

  // Those that have ended.
  void Forget() {
    sessions_.remove_if([](const auto& weak) { return weak.expired(); });
  }

  const HttpServerOptions options_;
  const HttpService service_;
  std::atomic<std::size_t> body_bytes_;
  const std::shared_ptr<ByteBudget> memory_;
  const std::shared_ptr<UnreadPool> unread_;
  // Sessions, which end with io_ at the latest, count themselves.
  mutable std::mutex mu_;
  std::condition_variable none_left_;
  HttpCounters counters_;
  std::optional<HttpCertificate> certificate_;
  asio::io_context io_{1};
  const std::shared_ptr<IoGate> gate_;
  std::list<Door> doors_;
  std::uint16_t port_ = 0;
  std::atomic<bool> draining_ = false;
  std::list<std::weak_ptr<HttpSession>> sessions_;  // the I/O thread's
  std::atomic<bool> handles_large_ = false;
  asio::thread_pool small_bodies_, large_bodies_, farewells_;
  std::thread thread_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                       HttpService service) {
  auto impl = std::make_unique<Impl>(options, std::move(service));
  TROUPE_RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return impl_->port(); }

std::string HttpServer::Address() const {
  const std::string& host = impl_->options().host;
  const bool numbers_of_v6 = host.find(':') != host.npos;
  return fmt::format("{}://{}:{}", impl_->tls() ? "https" : "http",
                     numbers_of_v6 ? "[" + host + "]" : host, impl_->port());
}

HttpCounters HttpServer::counters() const { return impl_->counters(); }
void HttpServer::set_body_bytes(std::size_t most) { impl_->set_body_bytes(most); }
std::optional<HttpCertificate> HttpServer::certificate() const { return impl_->certificate(); }
void HttpServer::set_certificate(const HttpCertificate& next) { impl_->set_certificate(next); }
bool HttpServer::Drain(std::chrono::milliseconds longest) { return impl_->Drain(longest); }

}  // namespace troupe
