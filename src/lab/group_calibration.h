// Distils a group gate from what a model's routers say of a text: records gate inputs and scores,
// divides experts into groups by who is chosen together, learns the gate (expert/gate), and
// measures it on tokens that nothing was learned from. What `troupe calibrate --groups` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "model/config.h"
#include "runtime/engine.h"
#include "runtime/group_gate_file.h"
#include "runtime/session.h"
#include "text/vocab.h"

namespace troupe {

struct GroupCalibrationOptions {
  std::uint32_t groups = 0;
  std::size_t window = 512;        // tokens that see each other; at most the context
  std::size_t together = 32;       // that go through the layers at once, at most
  std::size_t most_tokens = 4096;  // recorded, in windows spread evenly over the text
  std::optional<TokenId> begin;    // put before each window (BOS), not recorded
  double usual_agreement = 0.95;   // looked into by default: the fewest that find it
  std::function<void(std::size_t done, std::size_t all)> progress;
};

// Ok if the model's experts can be divided so.
Status CheckGroupsFor(const ModelConfig& config, std::uint32_t groups);

// What it takes beside the engine, for the memory plan.
Bytes GroupCalibrationBytes(const ModelConfig& config, const GroupCalibrationOptions& options);

// Everything but the file's fingerprint and text, which the caller knows.
Result<GroupGateFile> CalibrateGroups(Session& session, Engine& engine,
                                      std::span<const TokenId> text,
                                      const GroupCalibrationOptions& options);

}  // namespace troupe
