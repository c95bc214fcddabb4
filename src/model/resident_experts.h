// Experts that all lie in memory for good: every one is ready at once.
#pragma once

#include <vector>

#include "model/expert_source.h"

namespace troupe {

class ResidentExperts final : public ExpertSource {
 public:
  // The weights must outlive it.
  explicit ResidentExperts(const ModelWeights& weights) : weights_(weights) {}

  void Ask(const ExpertBatch& batch) override;
  Result<std::span<const ReadyExpert>> Take(bool wait) override;
  ExpertUsage usage() const override {
    ExpertUsage usage;
    usage.hits = asks_;
    return usage;
  }

 private:
  const ModelWeights& weights_;
  std::vector<ReadyExpert> ready_;
  bool given_ = true;
  std::uint64_t asks_ = 0;
};

}  // namespace troupe
