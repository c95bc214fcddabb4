// `troupe bench-server`: what clients of a server see when many ask at once. Asks over sockets, so
// that the server may be on another machine; `troupe bench` times the engine alone.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "io/read_whole.h"
#include "troupe/asked_server.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/load_figures.h"
#include "troupe/load_plan.h"
#include "troupe/options.h"
#include "troupe/remark.h"
#include "troupe/server_load.h"

namespace troupe {
namespace {

constexpr std::size_t kMostRequests = 1'000'000;

class BenchServerCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    server_.AddOptions(options, "the server");
    options.Heading("Load");
    options
        .Add("--clients", clients_,
             "Clients, each of which sends a request, reads its answer and sends the next; times "
             "count from when the client was free (8)")
        .Between(std::size_t{1}, std::size_t{10'000})
        .Type("N");
    options
        .Add("--rate", rate_,
             "Requests a second that arrive at random times (a Poisson process), however many are "
             "under way, in place of --clients; times count from when a request was to be sent, "
             "even if this program sends it late")
        .Between(1e-3, 1e5)
        .Excludes("--clients")
        .Type("N");
    options.Add("--requests", load_.requests, "Requests to send (64)")
        .Between(std::size_t{1}, kMostRequests)
        .Type("N");
    options
        .AddParsed(
            "--prompt-tokens",
            [this](const std::string& text) {
              TROUPE_ASSIGN_OR_RETURN(load_.prompt, ParseLengthRange(text));
              return OkStatus();
            },
            "Length of a prompt, drawn from A to B (32..256)")
        .Type("A..B");
    options.Add("-n,--tokens", load_.answer, "Tokens of an answer (64)")
        .Between(std::size_t{1}, kMostTokens)
        .Type("N");
    options
        .Add("--lengths", lengths_,
             "Draw lengths of prompts and answers from recorded requests: CSV with the columns "
             "ContextTokens and GeneratedTokens, or JSON lines with input_length and "
             "output_length; also compressed (.zst). Those that do not fit into the server's "
             "context are cut to it, and counted")
        .Excludes("--prompt-tokens")
        .Excludes("--tokens")
        .Type("FILE");
    options.Add("--seed", load_.seed, "Seed of prompts, lengths and times (1)").Type("N");
    options.Heading(kOutputHeading);
    AddJsonOption(options, json_);
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const AskedServer target, server_.Read());
    if (!lengths_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(lengths_));
      TROUPE_ASSIGN_OR_RETURN(load_.lengths, ParseLengths(lengths_, text));
    }
    TROUPE_ASSIGN_OR_RETURN(const TargetFacts facts, LookAt(target));
    load_.rate = rate_;
    load_.context = facts.context;
    const std::vector<PlannedRequest> plan = PlanLoad(load_);
    const SeenLoad seen = RunLoad(target, facts, plan, rate_ ? 0 : clients_);
    LoadFigures figures = FiguresOf(seen.answers, seen.seconds);
    figures.cut = CutIn(plan);
    if (figures.cut > 0) {
      Remark("note: {} of {} requests were cut to the server's context of {} tokens\n", figures.cut,
             figures.requests, *facts.context);
    }
    if (json_ != "-") fmt::print("{}", LoadTable(figures));
    if (!json_.empty()) TROUPE_RETURN_IF_ERROR(WriteJson(LoadRecord(figures), json_));
    if (figures.failed == 0) return OkStatus();
    return Error(Code::kUnavailable, "{} of {} requests failed, the first: {}", figures.failed,
                 figures.requests, figures.first_failure);
  }

 private:
  AskedServerFlags server_;
  std::string lengths_, json_;
  std::size_t clients_ = 8;
  std::optional<double> rate_;
  LoadOptions load_{.requests = 64};
};

}  // namespace

std::unique_ptr<Command> MakeBenchServerCommand() { return std::make_unique<BenchServerCommand>(); }

}  // namespace troupe
