// Measures what chains of substitution policies cost and save: a text is scored token by token, as
// decode would go through it, exact and then with each chain, and each token is compared with
// exact. Every run has an engine and a cache of its own: a cache that had seen the text before
// would know what comes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "expert/substitution/quality_limit.h"
#include "lab/evaluation.h"
#include "lab/logits_file.h"
#include "runtime/engine.h"

namespace troupe {

// By rising strength: after a chain that surely loses more than anybody wants, the rest of its
// family is left out.
using ChainFamily = std::vector<std::string>;

// What is measured unless somebody says otherwise (docs/design/substitution.md says why these);
// where nothing may name other experts than the router chose, only those that do not.
std::vector<ChainFamily> UsualChains(bool may_name_others = true);

struct QualityMeasurementOptions {
  std::vector<ChainFamily> families = UsualChains();
  double most_loss = 0.1;        // of perplexity, that anybody wants
  EvaluationOptions evaluation;  // always one token at a time
  // Tokens scored, of those of all chains. What a family leaves out counts as done.
  std::function<void(std::size_t done, std::size_t all)> progress;
  // After each, exact first.
  std::function<void(const MeasuredChain&)> measured;
};

// Opens the model anew with this chain, always with as many of its experts in memory.
using OpenWithChain = std::function<Result<std::unique_ptr<Engine>>(const std::string& chain)>;

// Leaves in a file the logits that all chains are compared with. They are the same however many
// experts are in memory and however many tokens go together.
Result<Evaluation> SaveExactLogits(
    Engine& engine, std::span<const TokenId> text, const EvaluationOptions& evaluation,
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress = {});

Result<MeasuredShare> MeasureShare(const OpenWithChain& open, std::span<const TokenId> text,
                                   const LogitsReader& exact,
                                   const QualityMeasurementOptions& options);

}  // namespace troupe
