// The options by which `troupe serve` has a strong machine choose answers with it, or is that
// machine for others.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/status.h"
#include "server/served_model.h"
#include "split/end_answers.h"
#include "troupe/option_table.h"

namespace troupe {

// What answers of an end lose whose prompts are cut so: by rows that cross, and by nothing else.
ServedModel::Quality QualityBehind(const CutOptions& cuts);

class SplitFlags {
 public:
  void AddTo(Options& options);
  Status CheckUsage() const;

  bool has_cloud() const { return !cloud_.empty(); }
  // Whether the cloud may choose answers: then all are exact, as its are, but for QualityBehind().
  bool may_ask_cloud() const { return has_cloud() && rule_ != "end"; }
  // Whether answers may have drafts, which need not be exact.
  bool may_draft() const { return has_cloud() && (rule_ == "auto" || rule_ == "drafts"); }
  // Of a model's experts, that an end may run at most.
  double most_experts() const { return most_experts_percent_ / 100; }
  bool for_ends() const { return for_ends_; }
  // Of prompts that are cut by layers, as an end has them and as a cloud does; tokens 0: none.
  CutOptions cuts() const;
  std::size_t cut_tokens_of_cloud() const;
  // What was fitted for codes of cut prompts is wanted: by an end that was told of one, and by a
  // cloud, which any end may ask.
  bool reads_bases() const {
    const CutOptions of_end = cuts();
    return cut_tokens_of_cloud() > 0 ||
           (of_end.tokens > 0 && (!of_end.code.exact() || cut_loss_percent_));
  }
  // Share of perplexity that rows of cut prompts may lose, where the link is slow.
  std::optional<double> cut_loss() const {
    if (!cut_loss_percent_) return std::nullopt;
    return *cut_loss_percent_ / 100;
  }
  // Of either: that others know by a proof what is served here.
  bool any() const { return has_cloud() || for_ends_; }

  // Reads the file of the key. Without proof and limits, which depend on the model.
  Result<EndOptions> Read() const;

 private:
  Status ReadPlace(const std::string& text);
  // That what was said of the place takes effect there.
  Status CheckPlace() const;

  std::string cloud_, key_file_, rule_ = "auto";
  bool insecure_ = false, for_ends_ = false, explain_ = false;
  double most_experts_percent_ = 40;
  CutOptions cuts_;
  std::optional<std::size_t> chunk_;
  std::optional<double> cut_loss_percent_;
  std::optional<std::size_t> cut_tokens_;  // absent: as many as is usual
  RouteAwareLimits route_aware_;
};

}  // namespace troupe
