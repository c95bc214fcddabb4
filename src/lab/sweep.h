// The price of policies in one go: each chain at each size of the cache, its quality against exact
// answers to the same tokens, what it read and how fast it was. Every point has an engine of its
// own, so that none depends on what was measured before it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/evaluation.h"
#include "lab/sweep_points.h"
#include "runtime/plan_model.h"

namespace troupe {

struct SweepOptions {
  std::string model;
  EngineOptions engine;             // of its offload options, slots and chain are the sweep's
  std::vector<double> resident;     // shares of all experts
  std::vector<std::string> chains;  // "exact" comes first without being named
  EvaluationOptions evaluation;     // `together` is one if absent, as in decode
  std::string text_name;
  std::vector<TokenId> text;
  // The first n tokens are read at once before each point, as a prompt would be, and not scored:
  // they fill the cache. At least n others must be left.
  std::size_t settle = 0;
  std::string folder;  // made if there is none; gets points.jsonl and exact.logits
};

struct SweepHooks {
  // Of all points, those that are done and the share of the one under way; what that is.
  std::function<void(double done, std::size_t all, const std::string& what)> progress;
  // Each point in its turn, whether measured now or before.
  std::function<void(const SweepPoint& point, bool measured_now)> on_point;
};

// In the order of resident shares, of each the chains in theirs.
Result<std::vector<SweepPoint>> RunSweep(const SweepOptions& options, const SweepHooks& hooks = {});

}  // namespace troupe
