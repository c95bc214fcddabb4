// The server that a command asks: its options, and one request to it. Many at once are
// server_load.h's.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http/http_client.h"
#include "troupe/options.h"

namespace troupe {

// A server, and who asks it.
struct AskedServer {
  HttpUrl url;
  std::string key;  // empty: none
  HttpClientOptions client;
  bool takes_key = false;  // whoever asks may be told of --api-key
};

class AskedServerFlags {
 public:
  // `what` the server is, as the help says it.
  void AddOptions(Options& options, const char* what);

  Result<AskedServer> Read() const;

 private:
  std::string url_, key_;
  bool insecure_ = false;
};

// For a body of JSON, if there is one.
HttpHeaders HeadersFor(const AskedServer& server);

// OK if the server answered with 2xx; otherwise what it says is wrong.
Status JudgeAnswer(const AskedServer& server, std::string_view path, int status,
                   std::string_view body);

// The body of a good answer.
Result<std::string> AskServer(const AskedServer& server, HttpRequest request);

}  // namespace troupe
