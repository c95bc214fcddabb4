// What a handler answers through: at once, or piece by piece as it comes. All calls may come from
// any thread and none of them waits: what a client has not read yet is kept, up to a limit, beyond
// which the client is let go. After the client has left, calls do nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace troupe {

class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // The whole response. Once, and not after Begin.
  virtual void Send(HttpResponse response) = 0;

  // Or its beginning, whose body is what is written until End.
  virtual void Begin(HttpResponse head) = 0;
  // False: nobody reads any more.
  virtual bool Write(std::string_view bytes) = 0;
  virtual void End() = 0;
  // In place of End: the client sees that something is missing, as no answer has come after all.
  // Logs tell the status that the answer would have had. REQUIRES: MayBreak.
  virtual void Break(int status) = 0;
  // Whether a client could tell a response that is broken from one at its end, as it comes in
  // chunks: not with HTTP/1.0.
  virtual bool MayBreak() const = 0;

  // What the answer was, for logs. Before its end.
  virtual void Note(HttpUse use) = 0;

  // Calls once, from any thread, when the client has left before the end; at once if it has. Let go
  // after the end.
  virtual void WhenGone(std::function<void()> call) = 0;
  // Calls, from any thread, where the client sends nothing more and may have left: it is to write
  // something that whoever still reads passes over, as then the system tells. False: it cannot, and
  // the client is taken to have left. Without one it is as well if the response has begun, and
  // otherwise after a second.
  virtual void WhenDoubted(std::function<bool()> call) = 0;
};

using HttpReplyPtr = std::shared_ptr<HttpReply>;
// A reply that is let go of without an answer is answered with 500.
using HttpHandler = std::function<void(HttpRequest request, HttpReplyPtr reply)>;

// A body that takes little time to read, and never waits for a larger one.
inline constexpr std::size_t kSmallBodyBytes = 64 * 1024;

// What is behind the transport.
struct HttpService {
  // Requests with a body come on two threads that nothing else waits for, small ones on the one and
  // all others on the other, one after the other on each. Those without come on the I/O thread,
  // where nothing may wait. Of a connection the next one comes when the one before it is answered.
  HttpHandler handle;
  // Asked, on the I/O thread, before the body is read: a response in place of all that, after which
  // the connection is closed if a body comes.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> refusal = {};
  // How errors are told that no handler sees. Of the request's head there is what was understood.
  std::function<HttpResponse(int status, const std::string& message, const HttpRequest& head)>
      error = {};
  // Told of each request that is over, on the I/O thread, where nothing may wait; none: nobody is.
  std::function<void(const HttpEnded& ended)> log = {};
};

}  // namespace troupe
