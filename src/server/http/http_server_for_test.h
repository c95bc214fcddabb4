// A server over real sockets of this machine, whose handler does what a path says, and a client
// that says every byte itself.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/http_server.h"

namespace troupe {

// A connection whose bytes a test says and reads.
class Wire {
 public:
  explicit Wire(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval longest{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  }
  Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Wire() { Leave(); }

  void Say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Until that text has come, or the connection has ended.
  std::string ReadUntil(std::string_view end) {
    std::string all;
    char byte = 0;
    while (!all.ends_with(end) && Receive({&byte, 1}) == 1) all += byte;
    return all;
  }
  std::string Read(std::size_t most) {
    std::string bytes(most, ' ');
    bytes.resize(Receive(bytes));
    return bytes;
  }
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    while (const std::size_t got = Receive(bytes)) all.append(bytes, got);
    return all;
  }
  void Leave() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  // None: the connection has ended. That it goes on in silence is never what a test waits for.
  std::size_t Receive(std::span<char> to) {
    const ssize_t got = ::recv(fd_, to.data(), to.size(), 0);
    if (got < 0 && errno == EAGAIN) ADD_FAILURE() << "the server neither says more nor hangs up";
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  int fd_;
};

class HttpServerTest : public testing::Test {
 protected:
  void Open(HttpLimits limits = {}) {
    server_.reset();
    auto server = HttpServer::Listen(
        {.port = 0, .limits = limits, .certificate = "", .key = ""},
        {.handle = [this](HttpRequest request,
                          HttpReplyPtr reply) { Handle(std::move(request), std::move(reply)); },
         .refusal = Refusal,
         .log =
             [this](const HttpEnded& ended) {
               const std::lock_guard lock(log_mu_);
               log_.push_back(ended);
             }});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  void SetUp() override { Open(); }

  static std::optional<HttpResponse> Refusal(const HttpRequest& head) {
    if (head.path != "/closed") return std::nullopt;
    return HttpResponse{.status = 401, .content_type = "text/plain", .body = "no key"};
  }
  void Handle(HttpRequest request, HttpReplyPtr reply) {
    if (request.path == "/echo") {
      reply->Send({.content_type = "text/plain", .body = request.method + " " + request.body});
    } else if (request.path == "/stream") {
      reply->Begin({.content_type = "text/event-stream"});
      reply->WhenGone([this] { gone_.set_value(); });
      reply->Write("data: 1\n\n");
      begun_.set_value(std::move(reply));
    } else if (request.path == "/large") {  // more than the system takes
      reply->Send({.content_type = "text/plain", .body = std::string(kLarge, 'x')});
    } else if (request.path == "/wait") {
      waiting_.set_value();
      told_.get_future().wait();
      reply->Send({.content_type = "text/plain", .body = "told"});
    } else if (request.path == "/count") {
      const int now = ++at_once_;
      if (now > most_at_once_) most_at_once_ = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      --at_once_;
      reply->Send({.content_type = "text/plain", .body = "counted"});
    } else if (request.path == "/forget") {
      return;
    } else {
      reply->Send({.status = 404, .content_type = "text/plain", .body = request.path});
    }
  }
  static std::string Get(std::string_view path, std::string_view more = "") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: a\r\n{}\r\n", path, more);
  }

  static std::string Post(std::string_view path, std::string_view body) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", path,
                       body.size(), body);
  }

  Wire Connect() { return Wire(server_->port()); }
  std::string Ask(std::string_view bytes) {
    Wire wire = Connect();
    wire.Say(bytes);
    return wire.ReadAll();
  }
  bool Happens(auto condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // The nth request that was over, when it is.
  HttpEnded Logged(std::size_t n) {
    const auto size = [this] {
      const std::lock_guard lock(log_mu_);
      return log_.size();
    };
    EXPECT_TRUE(Happens([&] { return size() > n; }));
    const std::lock_guard lock(log_mu_);
    return log_.at(n);
  }

  // Of /stream, once its handler has returned it.
  HttpReplyPtr Kept() { return kept_.get(); }
  void Forget() { kept_ = {}; }

  static constexpr std::size_t kLarge = 5'000'000;
  std::promise<HttpReplyPtr> begun_;
  std::shared_future<HttpReplyPtr> kept_ = begun_.get_future().share();
  std::promise<void> gone_, waiting_, told_;
  std::atomic<int> at_once_ = 0, most_at_once_ = 0;
  std::mutex log_mu_;
  std::vector<HttpEnded> log_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace troupe
