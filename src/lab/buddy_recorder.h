// Counts, while tokens pass, which experts are chosen, and which together, and how evenly tokens
// spread their weight: what buddy lists and their gates are made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/substitution/coactivations.h"
#include "expert/substitution/token_entropy.h"
#include "model/config.h"
#include "model/route_observer.h"
#include "runtime/buddy_profile.h"

namespace troupe {

class BuddyRecorder final : public RouteObserver {
 public:
  explicit BuddyRecorder(const ModelConfig& config, const WarmUp& warm_up = {});

  void PassBegins(const PassFacts& pass) override;
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float> scores) override;
  void PassEnded() override;

  const Coactivations& counts() const { return counts_; }
  // Everything but the fingerprint and the text, which the caller knows.
  BuddyProfile Profile(const BuddyOptions& options) const;

 private:
  std::uint32_t first_layer_, top_k_;
  WarmUp warm_up_;
  Coactivations counts_;
  std::vector<EntropyHistogram> entropies_;  // [layer]
  std::uint64_t tokens_ = 0;
  std::size_t pass_tokens_ = 0;           // of the pass under way
  std::vector<std::uint32_t> positions_;  // of its rows
  std::vector<std::uint32_t> experts_;    // of one token, as are the next two
  std::vector<float> weights_;
  std::vector<ExpertChoice> slots_;
};

}  // namespace troupe
