#include "troupe/eval_low_share.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>

#include "lab/low_share_search.h"
#include "troupe/json_record.h"
#include "troupe/progress.h"

namespace troupe {

Status FindLowShare(Engine& engine, Session& session, const ScoredText& text,
                    const std::string& text_name, const EvaluationOptions& options,
                    double most_loss, const std::string& json) {
  if (engine.plan().memory.all_resident) {
    return InvalidArgument("{}: every expert is in memory; --slots makes them be read",
                           engine.path());
  }
  constexpr int kSteps = 6;
  double exact = 0;
  std::string rows;
  std::optional<ProgressBar> bar(std::in_place, "searching");
  std::size_t tried = 0;
  const auto perplexity = [&](double share) -> Result<double> {
    engine.AnswerBy(SubstitutionChain({}), {.prefill_share = share});
    TROUPE_ASSIGN_OR_RETURN(const Evaluation found, Evaluate(session, text.ids, options));
    if (share == 0) exact = found.Perplexity();
    rows += fmt::format("{:<6.4g}  {:<10.4f}  {:+.3f} %\n", share, found.Perplexity(),
                        100 * (found.Perplexity() / exact - 1));
    bar->UpdateCount(static_cast<double>(++tried), kSteps + 2);
    return found.Perplexity();
  };
  TROUPE_ASSIGN_OR_RETURN(const ShareSearch search, FindLowShare(perplexity, most_loss, kSteps));
  bar.reset();
  if (json != "-") {
    fmt::print("--low-copy prefill={:.4g} loses {:.3f} % (at most {:g} % asked for)\n",
               search.best.share, 100 * search.best.loss, 100 * most_loss);
    fmt::print("share   perplexity  loss\n{}", rows);
  }
  if (json.empty()) return OkStatus();
  Json trials = Json::Array();
  for (const ShareTrial& trial : search.trials) {
    trials.push_back(
        {{"share", trial.share}, {"perplexity", trial.perplexity}, {"loss", trial.loss}});
  }
  return WriteJson({{"model", engine.path()},
                    {"text", text_name},
                    {"window", options.window},
                    {"most_loss", most_loss},
                    {"low_share", search.best.share},
                    {"loss", search.best.loss},
                    {"trials", std::move(trials)}},
                   json);
}

}  // namespace troupe
