// Passes over rows of several sequences, on an engine whose sessions run one at a time: each
// sequence is a session, and a pass runs its groups one after the other. What the batcher and those
// above it see is pass_runner.h.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/engine_plan.h"
#include "runtime/pass_runner.h"
#include "runtime/session.h"

namespace troupe {

class EngineRunner final : public PassRunner {
 public:
  // What its sequences take beside the one that an engine's plan counts, at most.
  static Bytes BytesBeside(const ModelConfig& config, const EngineOptions& options,
                           std::uint32_t sequences);

  // Takes all memory that it will ever take. The engine must outlive it.
  static Result<std::unique_ptr<EngineRunner>> Create(Engine& engine, std::uint32_t sequences);

  RunnerLimits limits() const override;
  std::optional<SequenceId> Reserve(std::size_t tokens) override;
  void Release(SequenceId sequence) override;
  Status Run(std::span<const PassRows> rows) override;
  std::span<const float> Logits(SequenceId sequence) const override;
  std::span<const RowsCost> costs() const override { return costs_; }

 private:
  explicit EngineRunner(Engine& engine) : engine_(engine) {}
  Status RunGroup(const PassRows& group);

  Engine& engine_;
  std::vector<Session> sessions_;
  std::vector<bool> taken_;
  std::vector<RowsCost> costs_;
};

}  // namespace troupe
