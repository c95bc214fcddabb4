#include "lab/quality_measurement.h"

#include <cmath>

namespace troupe {
namespace {

MeasuredMean From(const Interval& interval) {
  return {.mean = interval.mean, .least = interval.least, .most = interval.most};
}

double ShareInMemory(const Engine& engine) {
  return static_cast<double>(engine.plan().memory.slots) / engine.plan().needs.AllExperts();
}

// At most, with exact.
std::size_t ChainsOf(const QualityMeasurementOptions& options) {
  std::size_t chains = 1;
  for (const ChainFamily& family : options.families) chains += family.size();
  return chains;
}

Result<MeasuredChain> MeasureChain(Engine& engine, const std::string& chain,
                                   std::span<const TokenId> text, const LogitsReader& exact,
                                   const QualityMeasurementOptions& options,
                                   std::size_t chains_done) {
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
  EvaluationOptions evaluation = options.evaluation;
  evaluation.together = 1;
  EvaluationHooks hooks;
  hooks.reference = &exact;
  if (options.progress) {
    hooks.progress = [&](std::size_t done, std::size_t all) {
      options.progress(chains_done * all + done, ChainsOf(options) * all);
    };
  }
  TROUPE_ASSIGN_OR_RETURN(const Evaluation found, Evaluate(session, text, evaluation, hooks));
  const ExpertUsage usage = engine.expert_usage();
  const Interval& ratio = found.comparison->perplexity_ratio;
  if (!std::isfinite(ratio.most)) {
    return InvalidArgument("a text of {} tokens is too short to tell what is lost", text.size());
  }
  const auto tokens = static_cast<double>(text.size());
  const auto uses = static_cast<double>(session.expert_uses());
  const auto changed = static_cast<double>(usage.NotExact());
  return MeasuredChain{.chain = chain,
                       .tokens = found.tokens,
                       .kl = From(found.comparison->kl),
                       .perplexity_ratio = From(ratio),
                       .changed = changed / uses,
                       .bytes = static_cast<double>(usage.bytes_read) / tokens,
                       .seconds = found.pass_seconds / tokens};
}

}  // namespace

std::vector<ChainFamily> UsualChains(bool may_name_others) {
  std::vector<ChainFamily> families = {{"drop:most-share=0.1", "drop:most-share=0.2"},
                                       {"drop:rho=1", "drop:rho=2"}};
  if (!may_name_others) return families;
  families.push_back({"smoe:alpha=0.1", "smoe:alpha=0.2", "smoe:alpha=0.3", "smoe:alpha=0.4",
                      "smoe:alpha=0.6", "smoe:alpha=1", "smoe:alpha=1+drop:most-share=0.1",
                      "smoe:alpha=1+drop:most-share=0.2"});
  families.push_back({"bias:bonus=0.05", "bias:bonus=0.1", "bias:bonus=0.2", "bias:bonus=0.4"});
  return families;
}

Result<Evaluation> SaveExactLogits(Engine& engine, std::span<const TokenId> text,
                                   const EvaluationOptions& evaluation, const std::string& path,
                                   const std::function<void(std::size_t, std::size_t)>& progress) {
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
  TROUPE_ASSIGN_OR_RETURN(LogitsWriter writer,
                          LogitsWriter::Create(path, engine.config().vocabulary));
  EvaluationHooks hooks;
  hooks.save = &writer;
  hooks.progress = progress;
  TROUPE_ASSIGN_OR_RETURN(Evaluation found, Evaluate(session, text, evaluation, hooks));
  TROUPE_RETURN_IF_ERROR(writer.Finish());
  return found;
}

Result<MeasuredShare> MeasureShare(const OpenWithChain& open, std::span<const TokenId> text,
                                   const LogitsReader& exact,
                                   const QualityMeasurementOptions& options) {
  MeasuredShare share;
  std::size_t done = 0;  // chains
  const auto measure = [&](const std::string& chain) -> Result<MeasuredChain> {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, open(chain));
    if (engine->plan().memory.all_resident) {
      return InvalidArgument("{}: every expert is in memory: there is nothing to answer otherwise",
                             engine->path());
    }
    share.share = ShareInMemory(*engine);
    Result<MeasuredChain> found = MeasureChain(*engine, chain, text, exact, options, done);
    if (found.ok() && options.measured) options.measured(*found);
    return found;
  };
  TROUPE_ASSIGN_OR_RETURN(share.exact, measure("exact"));
  ++done;
  if (share.exact.kl.most != 0) {
    return Error(Code::kInternal, "exact answers token by token differ from those of a prompt");
  }
  for (const ChainFamily& family : options.families) {
    const std::size_t end = done + family.size();
    for (const std::string& chain : family) {
      TROUPE_ASSIGN_OR_RETURN(MeasuredChain found, measure(chain));
      const bool hopeless = found.LeastLoss() > options.most_loss;
      share.chains.push_back(std::move(found));
      ++done;
      if (hopeless) break;
    }
    done = end;
  }
  return share;
}

}  // namespace troupe
