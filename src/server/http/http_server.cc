#include "server/http/http_server.h"

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "server/http/http_session.h"
#include "server/http/http_socket.h"

namespace troupe {
namespace {

using http_internal::ErrorCode;
using http_internal::SocketWire;
using http_internal::Tcp;
using http_internal::TlsSocket;
namespace asio = boost::asio;

Status FromTls(const std::string& path, const ErrorCode& error) {
  return InvalidArgument("{}: {}, expected a PEM file", path, error.message());
}

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
        tls_(asio::ssl::context::tls_server),
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
    if (error) return InvalidArgument("host '{}': {}", options_.host, error.message());
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
    std::optional<HttpResponse> refusal = service_.refusal(head);
    if (refusal && refusal->status >= 400)
      Count([](HttpCounters& counters) { ++counters.refused; });
    return refusal;
  }
  HttpResponse ErrorOf(int status, const std::string& message, const HttpRequest& head) override {
    if (service_.error) return service_.error(status, message, head);
    return {.status = status, .content_type = "text/plain", .body = message + "\n"};
  }
  void Farewell(std::shared_ptr<HttpExchange> exchange) override {
    asio::post(farewells_, [exchange = std::move(exchange)] { exchange->outbox().Close(); });
  }
  const std::shared_ptr<ByteBudget>& memory() const override { return memory_; }
  const std::shared_ptr<UnreadPool>& unread() const override { return unread_; }
  std::shared_ptr<IoGate> gate() const override { return gate_; }
  bool draining() const override { return draining_; }
  const HttpLimits& limits() const override { return options_.limits; }
  std::size_t body_bytes() const override { return body_bytes_; }
  void set_body_bytes(std::size_t most) { body_bytes_ = most; }
  void OnMalformed() override {
    Count([](HttpCounters& counters) { ++counters.malformed; });
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
  const HttpServerOptions& options() const { return options_; }
  HttpCounters counters() const {
    const std::lock_guard lock(mu_);
    return counters_;
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
    if (options_.certificate.empty() != options_.key.empty()) {
      return InvalidArgument("a certificate without its key, or a key without its certificate");
    }
    if (!tls()) return OkStatus();
    ErrorCode error;
    tls_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                     asio::ssl::context::no_tlsv1_1);
    // Thousands of silent connections should not keep buffers of 16 KiB each.
    SSL_CTX_set_mode(tls_.native_handle(), SSL_MODE_RELEASE_BUFFERS);
    if (tls_.use_certificate_chain_file(options_.certificate, error)) {
      return FromTls(options_.certificate, error);
    }
    if (tls_.use_private_key_file(options_.key, asio::ssl::context::pem, error)) {
      return FromTls(options_.key, error);
    }
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
    door.acceptor.async_accept([this, &door](const ErrorCode& error, Tcp::socket socket) {
      if (!door.acceptor.is_open()) return;
      if (!error) Begin(std::move(socket));
      // Without descriptors, or with as many as there may be, the next one waits in the kernel.
      if (error || IsFull()) return AcceptLater(door);
      Accept(door);
    });
  }

  void AcceptLater(Door& door) {
    door.retry.expires_after(std::chrono::milliseconds(50));
    door.retry.async_wait([this, &door](const ErrorCode& error) {
      if (error || !door.acceptor.is_open()) return;
      if (IsFull()) return AcceptLater(door);
      Accept(door);
    });
  }

  bool IsFull() const { return counters().connections >= options_.limits.connections; }

  void Begin(Tcp::socket socket) {
    ErrorCode ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    Count([](HttpCounters& counters) {
      ++counters.accepted;
      ++counters.connections;
    });
    if (tls()) {
      Keep(std::make_shared<SocketWire<TlsSocket>>(TlsSocket(std::move(socket), tls_)));
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
  asio::io_context io_{1};
  const std::shared_ptr<IoGate> gate_;
  std::list<Door> doors_;
  asio::ssl::context tls_;
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
bool HttpServer::Drain(std::chrono::milliseconds longest) { return impl_->Drain(longest); }

}  // namespace troupe
