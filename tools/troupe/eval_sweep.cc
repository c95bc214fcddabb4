#include "troupe/eval_sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "expert/prefetch/worth_prefetch.h"
#include "io/text_file.h"
#include "lab/sweep.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"
#include "troupe/sweep_report.h"

namespace troupe {
namespace {

// "smoe:alpha=0.1, drop", as all lists of chains; and ";", which was the sign once.
std::vector<std::string> Chains(const std::string& text) {
  std::vector<std::string> chains;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",;", at), text.size());
    std::string chain = text.substr(at, end - at);
    chain.erase(0, chain.find_first_not_of(' '));
    chain.erase(chain.find_last_not_of(' ') + 1);
    if (!chain.empty()) chains.push_back(std::move(chain));
    at = end + 1;
  }
  return chains;
}

}  // namespace

void EvalSweep::AddTo(Options& options) {
  options.Heading("Sweep");
  options
      .Add("--sweep", chains_,
           "Measure quality, bytes read and speed of these chains of --substitute, separated by "
           "commas, and of exact answers, at each cache size; a second call continues")
      .Type("CHAINS");
  options
      .Add("--resident", resident_,
           "Cache sizes for --sweep, in percent of all experts (75,50,37.5,25)")
      .SeparatedBy(',')
      .Between(0.01, 100.0)
      .Needs("--sweep")
      .Type("PERCENTS");
  options
      .Add(
          "--settle", settle_,
          "First tokens of the text, which fill the cache before each point of a sweep and are not "
          "scored (a window)")
      .Between(std::size_t{0}, kMostTokens)
      .Needs("--sweep")
      .Type("N");
  options
      .Add("-o,--out", folder_,
           "Folder for a sweep's points.jsonl, exact.logits, sweep.json and sweep.html")
      .Needs("--sweep")
      .Type("DIR");
}

Status EvalSweep::CheckUsage(const EvalFlags& flags) const {
  if (folder_.empty()) return InvalidArgument("--sweep needs a folder for its points: -o DIR");
  if (Chains(chains_).empty()) return InvalidArgument("--sweep: no chain in '{}'", chains_);
  const OffloadOptions offload = flags.engine_options().offload;
  if (offload.slots) return InvalidArgument("--sweep takes sizes by --resident, not by --slots");
  if (!std::holds_alternative<Exact>(offload.lossiness)) {
    return InvalidArgument("--sweep takes no --substitute, --quality or --latency");
  }
  if (!offload.score_tables.empty() && offload.score_tables != "none" &&
      !WorthPrefetch::IsMeant(offload.predictor)) {
    return InvalidArgument("--score-tables {}: read with --predict scores alone",
                           offload.score_tables);
  }
  return OkStatus();
}

Status EvalSweep::Run(EvalFlags& flags) const {
  SweepOptions options{.model = flags.model(),
                       .engine = flags.engine_options(),
                       .chains = Chains(chains_),
                       .text_name = flags.text().name(),
                       .folder = folder_};
  for (const double percent : resident_) options.resident.push_back(percent / 100);
  {
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(options.model, options.engine));
    TROUPE_ASSIGN_OR_RETURN(const ScoredText text, flags.TakeText(*planned.tokenizer));
    options.text = text.ids;
    options.evaluation = flags.options(text, planned.plan.context());
    options.settle = settle_.value_or(options.evaluation.window);
  }
  std::size_t known = 0;
  Result<std::vector<SweepPoint>> points = [&] {
    ProgressBar bar("sweep");
    SweepHooks hooks;
    hooks.progress = [&](double done, std::size_t all, const std::string&) {
      bar.UpdateCount(done, all);
    };
    hooks.on_point = [&](const SweepPoint&, bool measured_now) { known += measured_now ? 0 : 1; };
    return RunSweep(options, hooks);
  }();
  if (!points.ok()) return points.status();
  if (flags.prints()) Print(*points);
  if (known > 0) Remark("{} points were measured before\n", known);

  Json record;
  record["model"] = options.model;
  record["text"] = options.text_name;
  record["text_tokens"] = options.text.size();
  record["window"] = options.evaluation.window;
  record["settle"] = options.settle;
  record["together"] = options.evaluation.together.value_or(1);
  record["points"] = Json::Array();
  for (const SweepPoint& point : *points) record["points"].push_back(ToJson(point));
  TROUPE_RETURN_IF_ERROR(WriteJson(record, folder_ + "/sweep.json"));
  const std::string title = fmt::format("Answers that are not exact: {}",
                                        std::filesystem::path(options.model).filename().string());
  TROUPE_RETURN_IF_ERROR(WriteWholeText(folder_ + "/sweep.html", SweepPage(*points, title)));
  Remark("{0}/sweep.json, {0}/sweep.html\n", folder_);
  return flags.json().empty() ? OkStatus() : WriteJson(record, flags.json());
}

}  // namespace troupe
