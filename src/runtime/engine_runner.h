// The engine as the batcher sees it (pass_runner.h): each reservation is a session, and the rows of
// all groups of a pass go through the layers together.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/pass_runner.h"
#include "runtime/route_heat.h"
#include "runtime/session.h"

namespace troupe {

class EngineRunner final : public PassRunner {
 public:
  // The engine must outlive it. Other sessions of the engine take from the same room.
  explicit EngineRunner(Engine& engine);
  ~EngineRunner() override;
  EngineRunner(const EngineRunner&) = delete;
  EngineRunner& operator=(const EngineRunner&) = delete;

  RunnerLimits limits() const override;
  RequestId NewRequest() override { return engine_.NewRequest(); }
  ExpertUsage EndRequest(RequestId request) override { return engine_.EndRequest(request); }
  std::optional<SequenceId> Reserve(std::size_t tokens) override;
  void Release(SequenceId sequence) override;
  Status Run(std::span<const PassRows> rows) override;
  std::span<const float> Logits(SequenceId sequence) const override;
  SamplerScratch& sampler_scratch() override { return engine_.sampler_scratch(); }
  std::span<const RowsCost> costs() const override { return costs_; }
  // From the first look on it counts what routers choose, unless the engine has another observer.
  ExpertMap LookAtExperts() override;

 private:
  Session& SessionOf(SequenceId sequence);
  RowsCost TakeCost(const PassRows& group);

  Engine& engine_;
  std::vector<std::optional<Session>> sessions_;  // by Session::id()
  std::vector<SequenceRows> rows_;                // of Run, kept for their memory
  std::vector<RowsCost> costs_;
  std::optional<RouteHeat> heat_;  // since the first look
};

}  // namespace troupe
