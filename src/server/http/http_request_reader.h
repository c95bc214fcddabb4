// Reads the requests of one connection out of its bytes, in whatever pieces they come, within the
// limits of headers, of bodies, and of the memory that all connections share, of which long headers
// have their part as bodies do. Knows neither sockets
// nor time, which are http_session.h's. The parser is Boost.Beast's, behind http_request_reader.cc
// alone. Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "server/http/byte_budget.h"
#include "server/http/http_message.h"

namespace troupe {

class HttpRequestReader {
 public:
  enum class Event {
    kMore,       // bytes are needed
    kBegun,      // the first byte of a request has come
    kHead,       // its header is complete
    kDone,       // and its body
    kMalformed,  // it is no request, or too long: fault() says why
    kNoRoom,     // there is no memory for it
  };
  struct Fault {
    int status = 400;
    std::string message;
  };

  // `make_room` is called where there is no memory, and says whether there may be some now; null:
  // never.
  HttpRequestReader(std::size_t header_bytes, std::shared_ptr<ByteBudget> memory,
                    std::function<bool()> make_room = nullptr);
  ~HttpRequestReader();
  HttpRequestReader(const HttpRequestReader&) = delete;
  HttpRequestReader& operator=(const HttpRequestReader&) = delete;

  // Where the next bytes go, of which Take then says how many came; empty: there is no memory.
  std::span<char> Room();
  void Take(std::size_t bytes);

  // Reads on to the next event. After kDone, kMalformed and kNoRoom, Reset comes first.
  Event Next();
  // Begins the next request, with the bytes that came behind the one before.
  void Reset();

  // At kBegun; a longer body is malformed.
  void set_body_limit(std::size_t most);

  // Of the request that is being read.
  bool begun() const;
  bool has_head() const;
  bool done() const;
  // What is known of it, without its body. Whole from kHead on, until TakeRequest.
  const HttpRequest& head() const;
  bool awaits_continue() const;  // the client waits to be asked for the body
  bool takes_chunks() const;     // HTTP/1.1
  bool keeps_alive() const;      // the client wants the connection to go on
  const Fault& fault() const;

  // At kDone.
  HttpRequest TakeRequest();
  // Gives back the memory of a body that is not wanted.
  void DropBody();
  // The same of all of the request, of which its method and path stay, and of what came behind it.
  // Nothing can be read any more.
  void Forget();
  // Before it is destroyed, where Room is still written to: its memory is others' from now on.
  void GiveBack();
  // Of the memory that all connections share.
  std::size_t held() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
