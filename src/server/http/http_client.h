// Asks HTTP/1.1 servers over sockets, many at a time on the thread that runs it: a connection for
// each request under way, whose response comes piece by piece. Sockets and TLS are Boost.Asio's,
// behind http_client.cc alone. What a response means is the caller's part. Threads: one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http/http_message.h"
#include "server/http/http_url.h"

namespace troupe {

struct HttpClientOptions {
  bool any_certificate = false;  // of a server that speaks TLS; otherwise one the system trusts
  // Between two steps of a request: connected, answered, a further piece of the response.
  std::chrono::milliseconds silence{600'000};
  std::chrono::milliseconds whole{0};  // from the start of a request to its end; 0: any
  // Connections that stay open for requests to come. A request whose connection turns out to be
  // closed before a byte of the response is asked once more, on a new one: for requests that may
  // come twice. None is used again that was idle for longer than `kept_for`, or while another one
  // of the same server failed or fell silent: what lies between may have forgotten all of them.
  std::size_t kept_connections = 0;
  std::chrono::milliseconds kept_for{30'000};
};

// What a request calls, all from Run.
struct HttpListener {
  std::function<void(const HttpResponse& head)> on_head = {};  // its body is empty
  std::function<void(std::string_view piece)> on_piece = {};   // of the body
  // Once, as the last: OK when the response is complete, whatever its status. kUnavailable: nobody
  // there, or no answer. kDeadlineExceeded: a time limit. kDataLoss: no HTTP, or cut off.
  std::function<void(const Status&)> on_end = {};
};

class HttpClient {
 public:
  explicit HttpClient(const HttpClientOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Ends a request under way without a word: its listener is not called any more. Nothing after its
  // end. Called where listeners are.
  using Cancel = std::function<void()>;

  // `request.path` is added to the URL's. Host, length and connection are said without being asked.
  Cancel Start(const HttpUrl& url, const HttpRequest& request, HttpListener listener);
  // Uses no connection again that is idle now: a request to that server was cancelled, as it was
  // silent. Called where listeners are.
  void Forget(const HttpUrl& url);
  // Calls after that time.
  void After(std::chrono::nanoseconds time, std::function<void()> call);
  // Calls it as soon as may be. Any thread.
  void Post(std::function<void()> call);
  // Until nothing that was started is under way.
  void Run();
  // Also while nothing is, until Stop, which may come from any thread: what is under way then ends
  // without a word.
  void RunUntilStopped();
  void Stop();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// One request whose response is wanted whole. kDataLoss: its body has more than `most_bytes`.
Result<HttpResponse> AskHttp(const HttpUrl& url, const HttpRequest& request,
                             const HttpClientOptions& options, std::size_t most_bytes = 8 << 20);

}  // namespace troupe
