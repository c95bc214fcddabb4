// Reads one response out of the bytes of a connection, in whatever pieces they come, and hands on
// its head and the pieces of its body at once. Knows neither sockets nor time, which are
// http_client.cc's. The parser is Boost.Beast's, behind http_response_reader.cc alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "server/http/http_message.h"

namespace troupe {

class HttpResponseReader {
 public:
  using OnHead = std::function<void(const HttpResponse& head)>;  // its body is empty
  using OnPiece = std::function<void(std::string_view piece)>;   // of the body

  HttpResponseReader(OnHead on_head, OnPiece on_piece);
  ~HttpResponseReader();
  HttpResponseReader(const HttpResponseReader&) = delete;
  HttpResponseReader& operator=(const HttpResponseReader&) = delete;

  // Where the next bytes go, of which Take then says how many came. kDataLoss: this is no HTTP.
  std::span<char> Room();
  Status Take(std::size_t bytes);
  // No more bytes come. A body whose length nobody said ends here. kDataLoss: something is missing.
  Status OnEnd();
  bool done() const;
  // Once it is done: whether another request may follow on this connection.
  bool keeps_alive() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
