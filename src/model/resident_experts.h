// Experts that are all in memory: every one is ready at once, and each use is a hit.
#pragma once

#include <cstdint>
#include <vector>

#include "expert/flow/usage_ledger.h"
#include "model/expert_source.h"

namespace troupe {

class ResidentExperts final : public ExpertSource {
 public:
  // The weights must outlive it. `verified`: how many of their experts were when they were loaded.
  explicit ResidentExperts(const ModelWeights& weights, std::uint64_t verified = 0)
      : weights_(weights), verified_(verified) {}

  void OnPassBegins(const PassFacts& pass) override;
  void OnRouted(std::uint32_t layer, std::span<const float> scores,
                std::span<ExpertChoice> chosen) override;
  void Ask(const ExpertBatch& batch) override;
  Result<std::span<const ReadyExpert>> Take(bool wait) override;
  ExpertUsage usage() const override {
    ExpertUsage usage;
    usage.hits = asks_;
    usage.use_hits = slots_;
    usage.verified = verified_;
    return usage;
  }
  void SettleUsage() override;
  ExpertUsage TakeUsage(RequestId request) override { return ledger_.Take(request); }
  ExpertUsage EndRequest(RequestId request) override;

 private:
  const ModelWeights& weights_;
  std::uint64_t verified_;
  std::vector<ReadyExpert> ready_;
  bool given_ = true;
  std::uint64_t asks_ = 0;      // (layer, expert) pairs
  std::uint64_t slots_ = 0;     // (row, layer, expert) triples
  std::vector<GroupUse> uses_;  // by group of the pass
  UsageLedger ledger_;
};

}  // namespace troupe
