// Reads a text and watches how well the model's gates predict each other: what `troupe calibrate`
// does. The result is a value (model_profile.h); nothing here depends on the machine or its speed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "base/status.h"
#include "expert/prefetch/score_learner.h"
#include "model/route_observer.h"
#include "runtime/model_profile.h"
#include "runtime/session.h"
#include "text/vocab.h"

namespace troupe {

struct CalibrationOptions {
  std::size_t window = 512;          // tokens that see each other; at most the context
  std::size_t together = 32;         // that go through the layers at once, at most
  std::size_t most_tokens = 32'768;  // of the text; more teach little
  std::optional<TokenId> begin;      // put before each window (BOS), not counted
  RouteObserver* routes = nullptr;   // sees the same tokens' routing, without the first
  ScoreLearner* scores = nullptr;    // learns from the same tokens
  std::function<void(std::size_t done, std::size_t all)> progress;
};

// What it takes beside the engine, for the memory plan; `scores`: with a learner of them.
Bytes CalibrationBytes(const ModelConfig& config, const CalibrationOptions& options, bool scores);

// Everything but the profile's fingerprint and text, which the caller knows.
Result<ModelProfile> Calibrate(Session& session, Engine& engine, std::span<const TokenId> text,
                               const CalibrationOptions& options);

}  // namespace troupe
