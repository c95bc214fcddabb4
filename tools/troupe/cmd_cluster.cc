// `troupe cluster`: what a node of a cluster knows of it, asked over the node's own door; and what
// its nodes need to trust each other.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_value.h"
#include "base/printable.h"
#include "cluster/face/certificates.h"
#include "troupe/asked_server.h"
#include "troupe/cluster_record.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/options.h"
#include "troupe/verb_table.h"

namespace troupe {
namespace {

class NodeDoor {
 public:
  void AddOptions(Options& options) { server_.AddOptions(options, "a node's server"); }

  // What it answers, and the URL that was asked.
  struct Answer {
    std::string url, body;
  };
  Result<Answer> Ask(const char* method, const char* path) const {
    TROUPE_ASSIGN_OR_RETURN(AskedServer server, server_.Read());
    server.client.whole = std::chrono::seconds(10);
    TROUPE_ASSIGN_OR_RETURN(std::string body, AskServer(server, {.method = method, .path = path}));
    return Answer{.url = server.url.ToString(), .body = std::move(body)};
  }

 private:
  AskedServerFlags server_;
};

class ClusterView final : public Command {
 public:
  using Show = Result<std::string> (*)(std::string_view name, std::string_view record);
  ClusterView(const char* path, Show show) : path_(path), show_(show) {}

  void AddOptions(Options& options) override {
    door_.AddOptions(options);
    options.AddFlag("--json", json_, "Print the node's record as it is");
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const NodeDoor::Answer answer, door_.Ask("GET", path_));
    if (json_) {
      fmt::print("{}\n", answer.body);
      return OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string text, show_(answer.url, answer.body));
    fmt::print("{}", text);
    return OkStatus();
  }

 private:
  const char* const path_;
  const Show show_;
  NodeDoor door_;
  bool json_ = false;
};

class ClusterOrder final : public Command {
 public:
  explicit ClusterOrder(const char* path) : path_(path) {}

  void AddOptions(Options& options) override { door_.AddOptions(options); }
  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const NodeDoor::Answer answer, door_.Ask("POST", path_));
    TROUPE_ASSIGN_OR_RETURN(
        const std::string says,
        ReadJson<std::string>(answer.url, answer.body, [](const JsonValue& json) {
          return json.Has("says") ? json.At("says").String() : "done";  // an older build's
        }));
    fmt::print("{}\n", Printable(says));
    return OkStatus();
  }

 private:
  const char* const path_;
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
    fmt::print("{}, valid for {}; keep authority.key where no node is\n",
               Counted(wanted_.hosts.size(), "node certificate"), Counted(wanted_.days, "day"));
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
               std::make_unique<ClusterView>("/cluster", &ClusterTable));
    verbs_.Add(options, "plan", "Show which experts each node is to hold, and holds",
               std::make_unique<ClusterView>("/cluster/plan", &HoldingsTable));
    verbs_.Add(options, "explain",
               "Show what has happened, oldest first, and why peers are asked or not",
               std::make_unique<ClusterView>("/cluster", &ClusterEvents));
    verbs_.Add(options, "place", "Have the node that leads look now whether another plan is better",
               std::make_unique<ClusterOrder>("/cluster/place"));
    verbs_.Add(options, "drain", "Have others take what a node holds, so that it can be stopped",
               std::make_unique<ClusterOrder>("/cluster/drain"));
    verbs_.Add(options, "readmit",
               "Let a node take those for peers again that it has thrown out for wrong rows",
               std::make_unique<ClusterOrder>("/cluster/readmit"));
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
