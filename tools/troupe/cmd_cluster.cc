// `troupe cluster`: what a node of a cluster knows of it, asked over the node's own door.
#include <fmt/core.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "server/http/http_client.h"
#include "troupe/cluster_record.h"
#include "troupe/commands.h"
#include "troupe/options.h"

namespace troupe {
namespace {

class ClusterView final : public Command {
 public:
  using Show = Result<std::string> (*)(std::string_view name, std::string_view record);
  explicit ClusterView(Show show) : show_(show) {}

  void AddOptions(Options& options) override {
    options.Add("URL", url_, "Address of a node's server: http://HOST:PORT or https://HOST:PORT")
        .Required()
        .Type("URL");
    options.Add("--api-key", key_, "Key to ask with (TROUPE_API_KEY in the environment)")
        .Type("KEY");
    options.AddFlag(
        "--insecure", insecure_,
        "Accept any certificate of a server that speaks TLS: also one it signed itself");
    options.AddFlag("--json", json_, "Print the node's record as it is");
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(url_));
    HttpRequest request{.method = "GET", .path = "/cluster"};
    const char* const known = std::getenv("TROUPE_API_KEY");
    const std::string key = key_.empty() && known != nullptr ? known : key_;
    if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
    constexpr std::chrono::milliseconds kLongest{10'000};
    TROUPE_ASSIGN_OR_RETURN(
        const HttpResponse response,
        AskHttp(url, std::move(request), {.any_certificate = insecure_, .whole = kLongest}));
    if (response.status != 200) {
      return Error(Code::kUnavailable, "{}: {}", url.ToString(), WhyOf(response));
    }
    if (json_) {
      fmt::print("{}\n", response.body);
      return OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string text, show_(url.ToString(), response.body));
    fmt::print("{}", text);
    return OkStatus();
  }

 private:
  static std::string WhyOf(const HttpResponse& response) {
    const auto body = Json::Parse(response.body);
    const Json* const error = body ? body->Find("error") : nullptr;
    const Json* const message = error != nullptr ? error->Find("message") : nullptr;
    if (message != nullptr && message->IsString()) return message->AsString();
    return fmt::format("answers with status {}", response.status);
  }

  const Show show_;
  std::string url_, key_;
  bool insecure_ = false, json_ = false;
};

class ClusterCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    Options& status = options.AddSubcommand("status", "Show who is there and holds what");
    status_options_ = &status;
    status_.AddOptions(status);
    Options& explain = options.AddSubcommand("explain", "Show what has happened, oldest first");
    explain_.AddOptions(explain);
  }
  Status Run() override { return status_options_->chosen() ? status_.Run() : explain_.Run(); }

 private:
  ClusterView status_{&ClusterTable}, explain_{&ClusterEvents};
  const Options* status_options_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeClusterCommand() { return std::make_unique<ClusterCommand>(); }

}  // namespace troupe
