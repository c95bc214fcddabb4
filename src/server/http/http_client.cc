#include "server/http/http_client.h"

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe {
namespace http_client_internal {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using SteadyClock = std::chrono::steady_clock;

// A request under way. Lives as long as something of it is waited for.
template <typename Stream>
class Call : public std::enable_shared_from_this<Call<Stream>> {
 public:
  template <typename... Args>
  Call(asio::io_context& io, const HttpClientOptions& options, HttpUrl url, HttpListener listener,
       Args&... stream)
      : options_(options),
        url_(std::move(url)),
        listener_(std::move(listener)),
        resolver_(io),
        stream_(io, stream...),
        buffer_(kLongestHead) {
    parser_.body_limit(boost::none);
  }

  // The certificate must be the host's.
  void CheckName() { stream_.set_verify_callback(asio::ssl::host_name_verification(url_.host)); }

  void Start(HttpRequest request) {
    message_.version(11);
    message_.method_string(request.method);
    message_.target(url_.path + request.path);
    for (const auto& [name, value] : request.headers) message_.set(name, value);
    message_.set(http::field::host, url_.Authority());
    message_.set(http::field::connection, "close");
    message_.body() = std::move(request.body);
    if (!message_.body().empty() || request.method == "POST") {
      message_.content_length(message_.body().size());
    }
    resolver_.async_resolve(
        url_.host, std::to_string(url_.port), Tcp::resolver::numeric_service,
        [self = this->shared_from_this()](ErrorCode error, const Tcp::resolver::results_type& to) {
          if (error) return self->End(Code::kUnavailable, error.message());
          self->Connect(to);
        });
  }

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
  static constexpr std::size_t kLongestHead = 64 * 1024;

  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  void Expect() {
    if (options_.whole.count() > 0) {
      Lowest().expires_at(start_ + options_.whole);
    } else {
      Lowest().expires_after(options_.silence);
    }
  }

  void Connect(const Tcp::resolver::results_type& to) {
    Expect();
    Lowest().async_connect(
        to, [self = this->shared_from_this()](ErrorCode error, const Tcp::endpoint&) {
          if (error) return self->Fail(error, Code::kUnavailable);
          ErrorCode ignored;
          self->Lowest().socket().set_option(Tcp::no_delay(true), ignored);
          self->Greet();
        });
  }

  void Greet() {
    if constexpr (kTls) {
      // Names alone are asked for: an address has none (RFC 6066, 3).
      ErrorCode numeric;
      asio::ip::make_address(url_.host, numeric);
      if (numeric) SSL_set_tlsext_host_name(stream_.native_handle(), url_.host.c_str());
      Expect();
      stream_.async_handshake(asio::ssl::stream_base::client,
                              [self = this->shared_from_this()](ErrorCode error) {
                                if (error) return self->Fail(error, Code::kUnavailable);
                                self->Ask();
                              });
    } else {
      Ask();
    }
  }

  void Ask() {
    Expect();
    http::async_write(stream_, message_,
                      [self = this->shared_from_this()](ErrorCode error, std::size_t) {
                        if (error) return self->Fail(error, Code::kUnavailable);
                        self->ReadHead();
                      });
  }

  void ReadHead() {
    Expect();
    http::async_read_header(stream_, buffer_, parser_,
                            [self = this->shared_from_this()](ErrorCode error, std::size_t) {
                              if (error) return self->Fail(error, Code::kDataLoss);
                              self->TellHead();
                              self->ReadBody();
                            });
  }

  void TellHead() {
    if (!listener_.on_head) return;
    HttpResponse head{.status = static_cast<int>(parser_.get().result_int()), .content_type = ""};
    for (const auto& field : parser_.get()) {
      head.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    head.content_type = HeaderOf(head.headers, "content-type");
    listener_.on_head(head);
  }

  void ReadBody() {
    if (parser_.is_done()) return End(OkStatus());
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    Expect();
    http::async_read_some(
        stream_, buffer_, parser_,
        [self = this->shared_from_this()](ErrorCode error, std::size_t) { self->OnBody(error); });
  }

  void OnBody(ErrorCode error) {
    const std::size_t got = piece_.size() - parser_.get().body().size;
    if (got > 0 && listener_.on_piece) listener_.on_piece({piece_.data(), got});
    // A full buffer is emptied by now.
    if (error && error != http::error::need_buffer) return Fail(error, Code::kDataLoss);
    ReadBody();
  }

  void Fail(ErrorCode error, Code code) {
    if (error == beast::error::timeout) return End(Code::kDeadlineExceeded, "no answer in time");
    if (error == http::error::end_of_stream || error == http::error::partial_message ||
        error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
      return End(Code::kDataLoss, "the connection was closed before the answer was complete");
    }
    End(code, error.message());
  }
  void End(Code code, const std::string& why) { End(Error(code, "{}: {}", url_.ToString(), why)); }
  void End(const Status& status) {
    ErrorCode ignored;
    Lowest().socket().shutdown(Tcp::socket::shutdown_both, ignored);
    Lowest().close();
    if (listener_.on_end) listener_.on_end(status);
  }

  const HttpClientOptions options_;
  const HttpUrl url_;
  const HttpListener listener_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  Tcp::resolver resolver_;
  Stream stream_;
  http::request<http::string_body> message_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::array<char, 16 * 1024> piece_;
};

}  // namespace http_client_internal

class HttpClient::Impl {
 public:
  explicit Impl(const HttpClientOptions& options) : options_(options) {
    if (options.any_certificate) return;
    boost::system::error_code ignored;  // without certificates no server is trusted, which is said
    tls_.set_default_verify_paths(ignored);
    tls_.set_verify_mode(boost::asio::ssl::verify_peer, ignored);
  }

  void Start(const HttpUrl& url, HttpRequest request, HttpListener listener) {
    namespace internal = http_client_internal;
    if (url.tls) {
      const auto call = std::make_shared<internal::Call<internal::TlsStream>>(
          io_, options_, url, std::move(listener), tls_);
      if (!options_.any_certificate) call->CheckName();
      return call->Start(std::move(request));
    }
    std::make_shared<internal::Call<internal::PlainStream>>(io_, options_, url, std::move(listener))
        ->Start(std::move(request));
  }

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
};

HttpClient::HttpClient(const HttpClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}
HttpClient::~HttpClient() = default;

void HttpClient::Start(const HttpUrl& url, HttpRequest request, HttpListener listener) {
  impl_->Start(url, std::move(request), std::move(listener));
}
void HttpClient::After(std::chrono::nanoseconds time, std::function<void()> call) {
  impl_->After(time, std::move(call));
}
void HttpClient::Run() { impl_->Run(); }

Result<HttpResponse> AskHttp(const HttpUrl& url, HttpRequest request,
                             const HttpClientOptions& options, std::size_t most_bytes) {
  HttpClient client(options);
  HttpResponse response;
  Status ended;
  bool too_long = false;
  client.Start(url, std::move(request),
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
