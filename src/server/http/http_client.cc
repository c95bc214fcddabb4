#include "server/http/http_client.h"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "server/http/host_fault.h"
#include "server/http/http_response_reader.h"

namespace troupe {
namespace http_client_internal {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using TlsStream = asio::ssl::stream<Tcp::socket&>;
using SteadyClock = std::chrono::steady_clock;
using OnBytes = std::function<void(ErrorCode, std::size_t)>;

// A line break within a header would begin another one: such headers are left out.
std::string TextOf(const HttpUrl& url, const HttpRequest& request, bool keeps) {
  std::string text = request.method + " " + url.path + request.path + " HTTP/1.1\r\n";
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (value.find_first_of("\r\n") != std::string_view::npos) return;
    text.append(name).append(": ").append(value).append("\r\n");
  };
  add("Host", url.Authority());
  add("Connection", keeps ? "keep-alive" : "close");
  for (const auto& [name, value] : request.headers) add(name, value);
  if (!request.body.empty() || request.method == "POST") {
    add("Content-Length", std::to_string(request.body.size()));
  }
  return text + "\r\n" + request.body;
}

struct Connection {
  explicit Connection(asio::io_context& io) : socket(io) {}

  Tcp::socket socket;
  std::optional<TlsStream> tls;  // through that socket
};

// Those that are open and idle, the last one at the end.
class IdleConnections {
 public:
  IdleConnections(std::size_t most, std::chrono::milliseconds longest)
      : most_(most), longest_(longest) {}

  bool any() const { return most_ > 0; }
  // Null: there is none.
  std::unique_ptr<Connection> Take(const std::string& server) {
    std::erase_if(idle_, [limit = SteadyClock::now() - longest_](const Idle& one) {
      return one.since < limit;
    });
    for (auto at = idle_.end(); at != idle_.begin();) {
      --at;
      if (at->server != server) continue;
      std::unique_ptr<Connection> found = std::move(at->connection);
      idle_.erase(at);
      return found;
    }
    return nullptr;
  }
  void Keep(const std::string& server, std::unique_ptr<Connection> connection) {
    idle_.push_back({server, std::move(connection), SteadyClock::now()});
    if (idle_.size() > most_) idle_.erase(idle_.begin());
  }
  // Where one is dead the others are: the way to that server has changed.
  void Forget(const std::string& server) {
    std::erase_if(idle_, [&](const Idle& one) { return one.server == server; });
  }

 private:
  struct Idle {
    std::string server;
    std::unique_ptr<Connection> connection;
    SteadyClock::time_point since;
  };
  const std::size_t most_;
  const std::chrono::milliseconds longest_;
  std::vector<Idle> idle_;
};

std::string ServerOf(const HttpUrl& url) {
  return (url.tls ? "https " : "http ") + url.Authority();
}

// A request under way. Lives as long as something of it is waited for.
class Call : public std::enable_shared_from_this<Call> {
 public:
  // `tls` for a server that speaks it, else null. All must outlive it.
  Call(asio::io_context& io, asio::ssl::context* tls, IdleConnections& idle,
       const HttpClientOptions& options, HttpUrl url, HttpListener listener)
      : io_(io),
        tls_(tls),
        idle_(idle),
        options_(options),
        url_(std::move(url)),
        listener_(std::move(listener)),
        resolver_(io),
        timer_(io),
        reader_(listener_.on_head, listener_.on_piece) {}

  void Start(const HttpRequest& request) {
    text_ = TextOf(url_, request, idle_.any());
    connection_ = idle_.Take(Server());
    was_idle_ = connection_ != nullptr;
    was_idle_ ? Ask(0) : Resolve();
  }

  void Cancel() {
    if (!ended_) Close();
  }

 private:
  std::string Server() const { return ServerOf(url_); }
  Tcp::socket& socket() { return connection_->socket; }
  std::optional<TlsStream>& tls() { return connection_->tls; }

  void Resolve() {
    connection_ = std::make_unique<Connection>(io_);
    Expect();
    resolver_.async_resolve(
        url_.host, std::to_string(url_.port), Tcp::resolver::numeric_service,
        [self = shared_from_this()](ErrorCode error, const Tcp::resolver::results_type& to) {
          if (self->ended_) return;
          if (error) {
            return self->End(Code::kUnavailable, HostFault(self->url_.host, error));
          }
          self->Connect(to);
        });
  }

  void UseTls() {
    tls().emplace(socket(), *tls_);
    if (!options_.any_certificate) {
      tls()->set_verify_callback(asio::ssl::host_name_verification(url_.host));
    }
    // Names alone are asked for: an address has none (RFC 6066, 3).
    ErrorCode numeric;
    asio::ip::make_address(url_.host, numeric);
    if (numeric) SSL_set_tlsext_host_name(tls()->native_handle(), url_.host.c_str());
  }

  // The other side had closed a connection that was idle.
  bool WasClosedMeanwhile() const { return was_idle_ && !was_heard_; }
  void AskAgain() {
    was_idle_ = false;
    idle_.Forget(Server());
    Resolve();
  }

  // The next step is waited for so long.
  void Expect() {
    if (options_.whole.count() > 0) {
      timer_.expires_at(start_ + options_.whole);
    } else {
      timer_.expires_after(options_.silence);
    }
    timer_.async_wait([weak = weak_from_this()](ErrorCode error) {
      const auto self = weak.lock();
      // It may have been set anew when this call was already on its way.
      if (error || !self || self->timer_.expiry() > SteadyClock::now()) return;
      self->End(Code::kDeadlineExceeded, "no answer in time");
    });
  }

  void Connect(const Tcp::resolver::results_type& to) {
    Expect();
    asio::async_connect(socket(), to,
                        [self = shared_from_this()](ErrorCode error, const Tcp::endpoint&) {
                          if (self->ended_) return;
                          if (error) return self->End(Code::kUnavailable, error.message());
                          ErrorCode ignored;
                          self->socket().set_option(Tcp::no_delay(true), ignored);
                          self->tls_ != nullptr ? self->Greet() : self->Ask(0);
                        });
  }

  void Greet() {
    Expect();
    UseTls();
    tls()->async_handshake(asio::ssl::stream_base::client,
                           [self = shared_from_this()](ErrorCode error) {
                             if (self->ended_) return;
                             if (error) return self->End(Code::kUnavailable, error.message());
                             self->Ask(0);
                           });
  }

  void Ask(std::size_t sent) {
    if (sent == text_.size()) return Read();
    Expect();
    OnBytes done = [self = shared_from_this(), sent](ErrorCode error, std::size_t bytes) {
      if (self->ended_) return;
      if (error && self->WasClosedMeanwhile()) return self->AskAgain();
      if (error) return self->End(Code::kUnavailable, error.message());
      self->Ask(sent + bytes);
    };
    const asio::const_buffer rest(text_.data() + sent, text_.size() - sent);
    tls() ? tls()->async_write_some(rest, std::move(done))
          : socket().async_write_some(rest, std::move(done));
  }

  void Read() {
    Expect();
    const std::span<char> room = reader_.Room();
    OnBytes done = [self = shared_from_this()](ErrorCode error, std::size_t bytes) {
      if (!self->ended_) self->OnRead(error, bytes);
    };
    const asio::mutable_buffer to(room.data(), room.size());
    tls() ? tls()->async_read_some(to, std::move(done))
          : socket().async_read_some(to, std::move(done));
  }

  void OnRead(ErrorCode error, std::size_t bytes) {
    // It will not be sent again, and the answer may take minutes.
    if (bytes > 0 && !std::exchange(was_heard_, true)) std::string().swap(text_);
    if (error && WasClosedMeanwhile()) return AskAgain();
    const Status read = reader_.Take(bytes);
    if (ended_) return;  // cancelled by who was told of the bytes
    if (!read.ok()) return End(read.code(), read.message());
    if (reader_.done()) return Done(!error && reader_.keeps_alive());
    if (!error) return Read();
    // Without TLS's own goodbye anybody may have cut it off.
    if (error != asio::error::eof && error != asio::ssl::error::stream_truncated) {
      return End(Code::kDataLoss, error.message());
    }
    const Status ended = reader_.OnEnd();
    if (ended.ok() && error == asio::error::eof) return End(OkStatus());
    End(Code::kDataLoss, "the connection was closed before the answer was complete");
  }

  void Done(bool keeps_alive) {
    if (keeps_alive && idle_.any()) {
      ended_ = true;
      timer_.cancel();
      idle_.Keep(Server(), std::move(connection_));
    }
    End(OkStatus());
  }

  void End(Code code, const std::string& why) {
    idle_.Forget(Server());
    End(Error(code, "{}: {}", url_.ToString(), why));
  }
  void End(const Status& status) {
    Close();
    if (listener_.on_end) listener_.on_end(status);
  }

  void Close() {
    ended_ = true;
    timer_.cancel();
    resolver_.cancel();
    if (connection_ == nullptr) return;
    ErrorCode ignored;
    socket().shutdown(Tcp::socket::shutdown_both, ignored);
    socket().close(ignored);
  }

  asio::io_context& io_;
  asio::ssl::context* const tls_;
  IdleConnections& idle_;
  const HttpClientOptions options_;
  const HttpUrl url_;
  const HttpListener listener_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  std::string text_;  // of the request; empty: a byte of the response has come
  bool ended_ = false;
  bool was_idle_ = false, was_heard_ = false;  // the connection; of the response
  Tcp::resolver resolver_;
  std::unique_ptr<Connection> connection_;  // null: not yet, or no more
  asio::steady_timer timer_;
  HttpResponseReader reader_;
};

}  // namespace http_client_internal

class HttpClient::Impl {
 public:
  explicit Impl(const HttpClientOptions& options)
      : options_(options), idle_(options.kept_connections, options.kept_for) {
    if (options.any_certificate) return;
    boost::system::error_code ignored;  // without certificates no server is trusted, which is said
    tls_.set_default_verify_paths(ignored);
    tls_.set_verify_mode(boost::asio::ssl::verify_peer, ignored);
  }

  Cancel Start(const HttpUrl& url, const HttpRequest& request, HttpListener listener) {
    const auto call = std::make_shared<http_client_internal::Call>(
        io_, url.tls ? &tls_ : nullptr, idle_, options_, url, std::move(listener));
    call->Start(request);
    return [weak = std::weak_ptr(call)] {
      if (const auto still = weak.lock()) still->Cancel();
    };
  }

  void Forget(const HttpUrl& url) { idle_.Forget(http_client_internal::ServerOf(url)); }

  void Post(std::function<void()> call) { boost::asio::post(io_, std::move(call)); }

  void RunUntilStopped() {
    const auto stays = boost::asio::make_work_guard(io_);
    io_.run();
  }

  void Stop() { io_.stop(); }

  void After(std::chrono::nanoseconds time, std::function<void()> call) {
    const auto timer = std::make_shared<boost::asio::steady_timer>(io_);
    timer->expires_after(time);
    timer->async_wait([timer, call = std::move(call)](boost::system::error_code) { call(); });
  }

  void Run() {
    io_.restart();
    io_.run();
  }

 private:
  const HttpClientOptions options_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_client};
  boost::asio::io_context io_{1};
  http_client_internal::IdleConnections idle_;
};

HttpClient::HttpClient(const HttpClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}
HttpClient::~HttpClient() = default;

HttpClient::Cancel HttpClient::Start(const HttpUrl& url, const HttpRequest& request,
                                     HttpListener listener) {
  return impl_->Start(url, request, std::move(listener));
}
void HttpClient::Forget(const HttpUrl& url) { impl_->Forget(url); }
void HttpClient::Post(std::function<void()> call) { impl_->Post(std::move(call)); }
void HttpClient::RunUntilStopped() { impl_->RunUntilStopped(); }
void HttpClient::Stop() { impl_->Stop(); }
void HttpClient::After(std::chrono::nanoseconds time, std::function<void()> call) {
  impl_->After(time, std::move(call));
}
void HttpClient::Run() { impl_->Run(); }

Result<HttpResponse> AskHttp(const HttpUrl& url, const HttpRequest& request,
                             const HttpClientOptions& options, std::size_t most_bytes) {
  HttpClient client(options);
  HttpResponse response;
  Status ended;
  bool too_long = false;
  client.Start(url, request,
               {.on_head = [&](const HttpResponse& head) { response = head; },
                .on_piece =
                    [&](std::string_view piece) {
                      too_long = too_long || response.body.size() + piece.size() > most_bytes;
                      if (!too_long) response.body += piece;
                    },
                .on_end = [&](const Status& status) { ended = status; }});
  client.Run();
  TROUPE_RETURN_IF_ERROR(ended);
  if (too_long) return DataLoss("{}: an answer of more than {} bytes", url.ToString(), most_bytes);
  return response;
}

}  // namespace troupe
