#include "troupe/asked_server.h"

#include <cstdlib>
#include <utility>

#include "server/http/error_message.h"

namespace troupe {

void AskedServerFlags::AddOptions(Options& options, const char* what) {
  options
      .Add("URL", url_, fmt::format("Address of {}: http://HOST:PORT or https://HOST:PORT", what))
      .Required()
      .Type("URL");
  options.Add("--api-key", key_, "Key to ask with (TROUPE_API_KEY in the environment)").Type("KEY");
  options.AddFlag("--insecure", insecure_,
                  "Accept any certificate of a server that speaks TLS: also one it signed itself");
}

Result<AskedServer> AskedServerFlags::Read() const {
  AskedServer server{.key = key_, .client = {.any_certificate = insecure_}, .takes_key = true};
  // Others see command lines.
  if (const char* const key = std::getenv("TROUPE_API_KEY"); key_.empty() && key != nullptr) {
    server.key = key;
  }
  TROUPE_ASSIGN_OR_RETURN(server.url, ParseHttpUrl(url_));
  for (const char c : server.key) {
    if (c < ' ' || c == '\x7f') return InvalidArgument("--api-key: a key of one line expected");
  }
  return server;
}

HttpHeaders HeadersFor(const AskedServer& server) {
  HttpHeaders headers = {{"Content-Type", "application/json"}};
  if (!server.key.empty()) headers.emplace_back("Authorization", "Bearer " + server.key);
  return headers;
}

Status JudgeAnswer(const AskedServer& server, std::string_view path, int status,
                   std::string_view body) {
  if (status >= 200 && status < 300) return OkStatus();
  if (status == 401 && server.takes_key && server.key.empty()) {
    return Error(Code::kUnavailable,
                 "{}{}: this server wants a key: --api-key or TROUPE_API_KEY in the environment",
                 server.url.ToString(), path);
  }
  return Error(Code::kUnavailable, "{}{}: {} {}: {}", server.url.ToString(), path, status,
               ReasonOf(status), ErrorMessageIn(body));
}

Result<std::string> AskServer(const AskedServer& server, HttpRequest request) {
  request.headers = HeadersFor(server);
  const std::string path = request.path;
  Result<HttpResponse> response = AskHttp(server.url, request, server.client);
  if (!response.ok() && response.status().message().find("certificate") != std::string::npos) {
    return Error(Code::kUnavailable, "{}; --insecure accepts any certificate",
                 response.status().message());
  }
  TROUPE_RETURN_IF_ERROR(response.status());
  TROUPE_RETURN_IF_ERROR(JudgeAnswer(server, path, response->status, response->body));
  return std::move(response->body);
}

}  // namespace troupe
