// `troupe ps`: the servers of this machine that this user may see, and what they are doing.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/server_watch.h"
#include "troupe/serving_file.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{500};

std::string NumberOrDash(const std::optional<double>& number, int digits) {
  return number ? fmt::format("{:.{}f}", *number, digits) : "-";
}

// What others wrote into their files must not steer this terminal.
std::string Shown(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return text;
}

class PsCommand final : public Command {
 public:
  void AddOptions(Options& options) override { AddJsonOption(options, json_); }

  Status Run() override {
    const std::vector<RunningServer> servers = FindServers();
    const std::vector<ServerActivity> activity = WatchServers(servers, kBetweenLooks);
    if (json_ != "-") Print(servers, activity);
    return json_.empty() ? OkStatus() : WriteJson(Record(servers, activity), json_);
  }

 private:
  static std::string Sentence(const std::vector<ServerActivity>& activity) {
    if (activity.empty()) return "no server runs here that you may see";
    double requests = 0, tokens = 0;
    std::size_t keyed = 0, silent = 0;
    for (const ServerActivity& now : activity) {
      requests += now.requests.value_or(0);
      tokens += now.tokens_per_second.value_or(0);
      keyed += now.wants_key ? 1 : 0;
      silent += now.requests || now.wants_key ? 0 : 1;
    }
    return fmt::format("{}: {} now, {:.1f} tokens/s{}", Counted(activity.size(), "server"),
                       Counted(static_cast<std::uint64_t>(requests), "request"), tokens,
                       Untold(keyed, silent));
  }

  static std::string Untold(std::size_t keyed, std::size_t silent) {
    if (keyed + silent == 0) return "";
    std::string why;
    if (keyed > 0) why = fmt::format("{} of them {} a key", keyed, keyed == 1 ? "wants" : "want");
    if (silent > 0) {
      why += fmt::format("{}{} of them did not tell", why.empty() ? "" : ", ", silent);
    }
    return fmt::format(" ({})", why);
  }

  static void Print(const std::vector<RunningServer>& servers,
                    const std::vector<ServerActivity>& activity) {
    fmt::print("{}\n", Sentence(activity));
    if (servers.empty()) return;
    fmt::print("{:>8}  {:>13}  {:>10}  {:>12}  {:>8}  {:<28}  {}\n", "process", "memory budget",
               "memory now", "requests now", "tokens/s", "address", "model");
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const auto& [pid, start, pids, facts] = servers[i];
      const ServerActivity& now = activity[i];
      fmt::print("{:>8}  {:>13}  {:>10}  {:>12}  {:>8}  {:<28}  {}\n", pid, ToString(facts.budget),
                 now.resident ? ToString(*now.resident) : "-", NumberOrDash(now.requests, 0),
                 NumberOrDash(now.tokens_per_second, 1), Shown(facts.address), Shown(facts.model));
    }
  }

  static Json Record(const std::vector<RunningServer>& servers,
                     const std::vector<ServerActivity>& activity) {
    Json list = Json::Array();
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const auto& [pid, start, pids, facts] = servers[i];
      const ServerActivity& now = activity[i];
      list.push_back(
          {{"pid", pid},
           {"model", facts.model},
           {"address", facts.address},
           {"memory_budget_bytes", facts.budget.count()},
           {"resident_bytes", now.resident ? Json(now.resident->count()) : Json(nullptr)},
           {"requests", NumberOrNull(now.requests)},
           {"tokens_per_s", NumberOrNull(now.tokens_per_second)}});
    }
    Json record;
    record["servers"] = std::move(list);
    return record;
  }

  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakePsCommand() { return std::make_unique<PsCommand>(); }

}  // namespace troupe
