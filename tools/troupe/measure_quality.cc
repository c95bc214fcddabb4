#include "troupe/measure_quality.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>

#include "lab/quality_measurement.h"
#include "runtime/plan_model.h"
#include "runtime/reading_conditions.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

// What the file has already, if what is measured now can stand beside it.
std::optional<QualityCurve> LoadAlike(const std::string& path, const QualityCurve& now) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  Result<QualityCurve> before = LoadQuality(path);
  if (!before.ok()) {
    Remark("note: {}; replaced\n", before.status().message());
    return std::nullopt;
  }
  if (const std::string difference = MeasuredOtherwise(*before, now); !difference.empty()) {
    Remark("note: {}: its shares were measured with {}; replaced\n", path, difference);
    return std::nullopt;
  }
  return *std::move(before);
}

void PrintHead() {
  fmt::print(
      "a chain of --substitute, how much perplexity it adds (at most: by the upper limit of 95 %), "
      "the\n"
      "expert uses answered otherwise, and what a token then reads from the disk and takes\n"
      "{:<44} {:>10} {:>8} {:>13} {:>9} {:>10} {:>9} {:>10}\n",
      "chain", "perplexity", "at most", "mean KL, nats", "changed", "read", "of exact", "time");
}

void Print(const MeasuredChain& chain, const MeasuredChain& exact) {
  fmt::print("{:<44} {:>+8.2f} % {:>+6.2f} % {:>13.2g} {:>7.1f} % {:>10} {:>7.1f} % {:>7.1f} ms\n",
             chain.chain, 100 * (chain.perplexity_ratio.mean - 1), 100 * chain.LossBound(),
             chain.kl.mean, 100 * chain.changed,
             ToString(Bytes(static_cast<std::uint64_t>(chain.bytes))),
             exact.bytes > 0 ? 100 * chain.bytes / exact.bytes : 100, 1e3 * chain.seconds);
  std::fflush(stdout);
}

// What the names that people give to --quality now mean.
void PrintConclusion(const MeasuredShare& share, std::uint32_t slots) {
  const auto reads = [&share](double loss) {
    const Result<ChosenChain> chosen = ChooseChain(std::span(&share, 1), share.share, loss);
    return chosen.ok() ? 100 * chosen->bytes_of_exact : 100;
  };
  fmt::print(
      "done: with {} experts in memory a token reads {:.0f} % of what exact answers read by "
      "--quality balanced, which adds at most {:g} % of perplexity, and {:.0f} % by --quality fast "
      "({:g} %)\n",
      slots, reads(kBalancedLoss), 100 * kBalancedLoss, reads(kFastLoss), 100 * kFastLoss);
}

Json ToJson(const MeasuredChain& chain) {
  return {{"chain", chain.chain},
          {"loss", chain.perplexity_ratio.mean - 1},
          {"loss_bound", chain.LossBound()},
          {"mean_kl", chain.kl.mean},
          {"changed", chain.changed},
          {"bytes_per_token", chain.bytes},
          {"seconds_per_token", chain.seconds}};
}

}  // namespace

void MeasureQuality::AddTo(Options& options) {
  options.Heading("Quality measurement");
  options.AddFlag("--measure-quality", wanted_,
                  "Also measure the loss and gain of replacing missing experts, which --quality "
                  "needs: takes hours on a large model");
  options
      .Add("--quality-tokens", tokens_,
           "Number of tokens at the end of the text to measure on; nothing is learned from them "
           "(2048)")
      .Between(kLeastTokens, kMostTokens)
      .Needs("--measure-quality")
      .Type("N");
  options
      .Add("--quality-window", window_,
           "Window of the measurement: its context in tokens (256, or what the model has if that "
           "is less)")
      .Between(std::size_t{2}, kMostTokens)
      .Needs("--measure-quality")
      .Type("N");
  options
      .Add("--shares", percents_,
           "Percentages of the model's experts in memory to measure with (25,50,75)")
      .SeparatedBy(',')
      .Between(0.01, 99.99)
      .Needs("--measure-quality")
      .Type("LIST");
  options.Add("--chain", chains_, "Measure only these chains of --substitute")
      .SeparatedBy(',')
      .Needs("--measure-quality")
      .Type("CHAIN,CHAIN,…");
  options
      .Add("--most-loss", most_loss_,
           "Measure no stronger chain of a kind once one certainly loses this many percent of "
           "perplexity (10)")
      .Between(0.0, 1e6)
      .Needs("--measure-quality")
      .Type("PERCENT");
  AddOutputOption(options, "--quality-output", output_,
                  "File for the measured quality (beside the model)")
      .Needs("--measure-quality");
}

Status MeasureQuality::CheckUsage() const {
  for (const std::string& chain : chains_) {
    // Its material is not there yet: buddies are checked when the model is opened with them.
    if (NeedsBuddies(chain)) continue;
    TROUPE_RETURN_IF_ERROR(ParseSubstitution(chain).status());
  }
  return OkStatus();
}

std::string MeasureQuality::path(const std::string& model) const {
  return output_.empty() ? QualityPathFor(model) : output_;
}

Result<std::vector<std::uint32_t>> MeasureQuality::CacheSizes(const EngineFlags& flags) const {
  const std::string& model = flags.model();
  EngineOptions options = flags.options();
  options.least_context =
      static_cast<std::uint32_t>(std::min(window_.value_or(kWindow), tokens_ + 1));
  std::vector<std::uint32_t> sizes;
  for (const double percent : percents_) {
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel whole, PlanModel(model, options));
    const std::uint32_t experts = whole.plan.needs.AllExperts();
    EngineOptions some = options;
    some.offload.slots =
        std::max(kLeastSlots, static_cast<std::uint32_t>(std::lround(percent / 100 * experts)));
    // The budget may hold fewer.
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(model, some));
    if (!planned.plan.memory.all_resident) sizes.push_back(planned.plan.memory.slots);
  }
  // Chains that this model takes not at all; those that need buddies wait for them.
  options.offload.slots = sizes.empty() ? kLeastSlots : sizes.front();
  for (const std::string& chain : chains_) {
    if (NeedsBuddies(chain)) continue;
    options.offload.lossiness = Chain{chain};
    TROUPE_RETURN_IF_ERROR(PlanModel(model, options).status());
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.empty()) {
    return InvalidArgument("--shares: {}: none of them leaves an expert out of memory", model);
  }
  return sizes;
}

Result<QualityCurve> MeasureQuality::Measure(const EngineFlags& flags, const Text& text,
                                             const std::string& fingerprint,
                                             const std::string& buddies,
                                             const std::vector<std::uint32_t>& sizes,
                                             bool table) const {
  const std::size_t window =
      std::min(window_.value_or(kWindow), text.ids.size() + (text.begin ? 1 : 0));
  EngineOptions options = flags.options();
  options.least_context = static_cast<std::uint32_t>(window);
  options.offload.buddies = buddies;
  QualityMeasurementOptions measurement{.most_loss = most_loss_ / 100,
                                        .evaluation = {.window = window, .begin = text.begin}};
  if (!chains_.empty()) {
    measurement.families.clear();
    for (const std::string& chain : chains_) measurement.families.push_back({chain});
  }

  const std::string file = path(flags.model()), logits = file + ".exact-logits";
  QualityCurve curve{.fingerprint = fingerprint,
                     .text = text.name,
                     .tokens = text.ids.size(),
                     .cache = options.offload.policy,
                     .predictor = options.offload.predictor,
                     .shares = {}};
  {
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(flags.model(), options));
    TROUPE_ASSIGN_OR_RETURN(curve.reading,
                            DescribeReading(flags.model(), planned.container, options.offload));
    if (!window_) {
      std::size_t& used = measurement.evaluation.window;
      used = std::min<std::size_t>(used, planned.plan.context());
    }
  }
  std::uint32_t threads = 0;
  {
    ProgressBar bar("exact answers");
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Open(flags.model(), options, bar.Callback()));
    TROUPE_ASSIGN_OR_RETURN(const Evaluation exact,
                            SaveExactLogits(*engine, text.ids, measurement.evaluation, logits,
                                            [&bar](std::size_t done, std::size_t all) {
                                              bar.UpdateCount(static_cast<double>(done), all);
                                            }));
    curve.perplexity = exact.Perplexity();
    threads = engine->plan().threads;
    if (chains_.empty()) measurement.families = UsualChains(!ChoosesByGroups(engine->config()));
  }
  curve.machine = DescribeMachine(threads, options.offload.link);
  TROUPE_ASSIGN_OR_RETURN(const LogitsReader reference, LogitsReader::OpenAndUnlink(logits));
  const std::optional<QualityCurve> before = LoadAlike(file, curve);

  ProgressBar bar("measuring");  // all sizes, so that it knows how much time is left
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    options.offload.slots = sizes[size];
    MeasuredChain exact;
    measurement.progress = [&, size](std::size_t done, std::size_t all) {
      bar.UpdateCount(static_cast<double>(size * all + done), sizes.size() * all);
    };
    measurement.measured = [&](const MeasuredChain& chain) {
      bar.Clear();
      if (chain.chain == "exact") exact = chain;
      if (table) Print(chain, exact);
    };
    if (table) {
      bar.Clear();
      fmt::print("\nwith {} experts in memory:\n", sizes[size]);
      PrintHead();
      std::fflush(stdout);
    }
    const auto open = [&](const std::string& chain) {
      EngineOptions with = options;
      with.offload.lossiness = Chain{chain};
      return Engine::Open(flags.model(), with);
    };
    TROUPE_ASSIGN_OR_RETURN(MeasuredShare share,
                            MeasureShare(open, text.ids, reference, measurement));
    if (table) {
      bar.Clear();
      PrintConclusion(share, sizes[size]);
    }
    curve.shares.push_back(std::move(share));
    TROUPE_RETURN_IF_ERROR(SaveQuality(before ? WithSharesOf(*before, curve) : curve, file));
  }
  return curve;
}

Json MeasureQuality::Record(const QualityCurve& curve) {
  Json shares = Json::Array();
  for (const MeasuredShare& share : curve.shares) {
    Json chains = Json::Array();
    for (const MeasuredChain& chain : share.chains) chains.push_back(ToJson(chain));
    shares.push_back(
        {{"share", share.share}, {"exact", ToJson(share.exact)}, {"chains", std::move(chains)}});
  }
  return {
      {"tokens", curve.tokens}, {"perplexity", curve.perplexity}, {"shares", std::move(shares)}};
}

}  // namespace troupe
