// `troupe cluster`: what a node of a cluster knows of it, asked over the node's own door; and what
// its nodes need to trust each other.
#include <fmt/core.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/face/certificates.h"
#include "server/http/http_client.h"
#include "troupe/cluster_record.h"
#include "troupe/commands.h"
#include "troupe/options.h"
#include "troupe/verb_table.h"

namespace troupe {
namespace {

// Where a node is, and how it is asked.
class NodeDoor {
 public:
  void AddOptions(Options& options) {
    options.Add("URL", url_, "Address of a node's server: http://HOST:PORT or https://HOST:PORT")
        .Required()
        .Type("URL");
    options.Add("--api-key", key_, "Key to ask with (TROUPE_API_KEY in the environment)")
        .Type("KEY");
    options.AddFlag(
        "--insecure", insecure_,
        "Accept any certificate of a server that speaks TLS: also one it signed itself");
  }

  const std::string& url() const { return url_; }
  // What it answers.
  Result<std::string> Ask(const char* method, const char* path) const {
    TROUPE_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(url_));
    HttpRequest request{.method = method, .path = path};
    const char* const known = std::getenv("TROUPE_API_KEY");
    const std::string key = key_.empty() && known != nullptr ? known : key_;
    if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
    constexpr std::chrono::milliseconds kLongest{10'000};
    TROUPE_ASSIGN_OR_RETURN(
        HttpResponse response,
        AskHttp(url, std::move(request), {.any_certificate = insecure_, .whole = kLongest}));
    if (response.status == 200) return std::move(response.body);
    return Error(Code::kUnavailable, "{}: {}", url.ToString(), WhyOf(response));
  }

 private:
  static std::string WhyOf(const HttpResponse& response) {
    const auto body = Json::Parse(response.body);
    const Json* const error = body ? body->Find("error") : nullptr;
    const Json* const message = error != nullptr ? error->Find("message") : nullptr;
    if (message != nullptr && message->IsString()) return message->AsString();
    return fmt::format("answers with status {}", response.status);
  }

  std::string url_, key_;
  bool insecure_ = false;
};

class ClusterView final : public Command {
 public:
  using Show = Result<std::string> (*)(std::string_view name, std::string_view record);
  explicit ClusterView(Show show) : show_(show) {}

  void AddOptions(Options& options) override {
    door_.AddOptions(options);
    options.AddFlag("--json", json_, "Print the node's record as it is");
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(std::string text, door_.Ask("GET", "/cluster"));
    if (json_) {
      text += '\n';
    } else {
      TROUPE_ASSIGN_OR_RETURN(text, show_(door_.url(), text));
    }
    fmt::print("{}", text);
    return OkStatus();
  }

 private:
  const Show show_;
  NodeDoor door_;
  bool json_ = false;
};

class ClusterOrder final : public Command {
 public:
  ClusterOrder(const char* path, const char* done) : path_(path), done_(done) {}

  void AddOptions(Options& options) override { door_.AddOptions(options); }
  Status Run() override {
    TROUPE_RETURN_IF_ERROR(door_.Ask("POST", path_).status());
    fmt::print("{}\n", done_);
    return OkStatus();
  }

 private:
  const char *const path_, *const done_;
  NodeDoor door_;
};

class ClusterCertificates final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("FOLDER", wanted_.folder, "Where the files are written").Required().Type("FOLDER");
    options
        .Add("--hosts", wanted_.hosts,
             "Names or addresses by which peers dial the nodes: HOST.pem and HOST.key for each")
        .Required()
        .SeparatedBy(',')
        .Type("HOST,…");
    options.Add("--days", wanted_.days, "How long a node's certificate is valid (825)")
        .Between(std::uint32_t{1}, std::uint32_t{36'500})
        .Type("N");
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> written, WriteCertificates(wanted_));
    for (const std::string& path : written) fmt::print("{}\n", path);
    return OkStatus();
  }

 private:
  CertificateOptions wanted_;
};

class ClusterCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    verbs_.Add(options, "status", "Show who is there and holds what",
               std::make_unique<ClusterView>(&ClusterTable));
    verbs_.Add(options, "explain", "Show what has happened, oldest first",
               std::make_unique<ClusterView>(&ClusterEvents));
    verbs_.Add(options, "place", "Have the node that leads look now whether another plan is better",
               std::make_unique<ClusterOrder>("/cluster/place", "it looks"));
    verbs_.Add(options, "drain", "Have others take what a node holds, so that it can be stopped",
               std::make_unique<ClusterOrder>(
                   "/cluster/drain", "others take what it holds; see status for what is left"));
    verbs_.Add(options, "certificates",
               "Write an authority and certificates for the nodes of a cluster",
               std::make_unique<ClusterCertificates>());
  }

  Status CheckUsage() const override { return verbs_.Chosen().CheckUsage(); }
  Status Run() override { return verbs_.Chosen().Run(); }

 private:
  VerbTable verbs_;
};

}  // namespace

std::unique_ptr<Command> MakeClusterCommand() { return std::make_unique<ClusterCommand>(); }

}  // namespace troupe
