// How well a model predicts a text, and how far its predictions lie from saved ones: perplexity,
// mean KL divergence, agreement on the most likely token. Teacher forcing: the model always sees
// the true text. Windows are scored apart from each other, each from an empty cache.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/compared_logits.h"
#include "lab/intervals.h"
#include "lab/logits_file.h"
#include "runtime/session.h"
#include "text/vocab.h"

namespace troupe {

struct EvaluationOptions {
  std::size_t window = 512;  // tokens scored from an empty cache, at most the context
  // Tokens of a window that go through the layers in one pass, at most; all of them if absent. One
  // is what decode does. The logits are the same, unless experts are answered for: then by this.
  std::optional<std::size_t> together;
  // Tokens of a window that are only read: predictions near its start know little.
  std::size_t warm_up = 0;
  std::optional<TokenId> begin;  // put before each window (BOS), never scored
};

struct Evaluation {
  std::size_t tokens = 0;   // that were scored
  std::size_t fed = 0;      // that went through the model for it
  std::size_t blocks = 0;   // that the intervals rest on
  Interval nll;             // nats per token
  double pass_seconds = 0;  // in the model's passes, without scoring what they gave
  std::optional<Comparison> comparison;
  std::vector<BlockMean::Block> kl_blocks;  // of the comparison, for who compares two

  double Perplexity() const;
};

struct EvaluationHooks {
  LogitsWriter* save = nullptr;             // gets the logits of every scored token
  const LogitsReader* reference = nullptr;  // is compared with, token by token
  std::function<void(std::size_t done, std::size_t all)> progress;
};

Result<Evaluation> Evaluate(Session& session, std::span<const TokenId> text,
                            const EvaluationOptions& options, const EvaluationHooks& hooks = {});

}  // namespace troupe
