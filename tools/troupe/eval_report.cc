#include "troupe/eval_report.h"

#include <fmt/core.h>

#include <cmath>

#include "troupe/counted.h"

namespace troupe {

void AddInterval(Json& record, const std::string& name, const Interval& interval) {
  const auto limit = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  record[name] = interval.mean;
  record[name + "_interval"] = Json::Array({limit(interval.least), limit(interval.most)});
}

std::string ToString(const Interval& interval, double scale) {
  const std::string mean = fmt::format("{:.5g}", scale * interval.mean);
  if (!std::isfinite(interval.least) || !std::isfinite(interval.most)) {
    return mean + " (too little to tell how surely)";
  }
  return fmt::format("{} ({:.5g} to {:.5g})", mean, scale * interval.least, scale * interval.most);
}

void Print(const Evaluation& e) {
  if (e.comparison) {
    fmt::print(
        "{:+.2f} % perplexity against the reference, and the same most likely token {:.1f} % of "
        "the time\n",
        100 * (e.comparison->perplexity_ratio.mean - 1), 100 * e.comparison->top1_agreement.mean);
  } else {
    fmt::print("perplexity {:.4f} over {}\n", e.Perplexity(), Counted(e.tokens, "token"));
  }
  fmt::print("tokens scored   {}\n", e.tokens);
  fmt::print("nats per token  {}\n", ToString(e.nll));
  fmt::print("perplexity      {:.4f}\n", e.Perplexity());
  if (!e.comparison) return;
  const Comparison& c = *e.comparison;
  fmt::print("mean KL         {} nats, worst {:.4g}\n", ToString(c.kl), c.worst_kl);
  fmt::print("perplexity      {} times the reference's\n", ToString(c.perplexity_ratio));
  fmt::print("same top token  {} %\n", ToString(c.top1_agreement, 100));
  fmt::print("true token      {:+.6f} probability on average\n", c.mean_probability_change);
  fmt::print("in brackets     what holds the true value 95 times of 100, by {} blocks of text\n",
             e.blocks);
}

void AddEvaluation(Json& record, const Evaluation& e) {
  record["tokens"] = e.tokens;
  record["blocks"] = e.blocks;
  AddInterval(record, "nll", e.nll);
  record["perplexity"] = e.Perplexity();
  record["pass_s"] = e.pass_seconds;
  if (!e.comparison) return;
  AddInterval(record, "mean_kl", e.comparison->kl);
  Json blocks = Json::Array();
  for (const BlockMean::Block& block : e.kl_blocks) {
    blocks.push_back(Json::Array({block.count, block.mean}));
  }
  record["kl_blocks"] = std::move(blocks);
  record["worst_kl"] = e.comparison->worst_kl;
  AddInterval(record, "perplexity_ratio", e.comparison->perplexity_ratio);
  AddInterval(record, "top1_agreement", e.comparison->top1_agreement);
  record["mean_probability_change"] = e.comparison->mean_probability_change;
}

}  // namespace troupe
