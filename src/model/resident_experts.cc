#include "model/resident_experts.h"

#include <utility>

namespace troupe {

void ResidentExperts::OnPassBegins(const PassFacts& pass) {
  SettleUsage();
  pass_ = pass;
  uses_.assign(pass.groups.size(), {});
}

void ResidentExperts::OnRouted(std::uint32_t, std::span<const float>,
                               std::span<ExpertChoice> chosen) {
  if (pass_.rows() == 0) return;
  const std::size_t slots = chosen.size() / pass_.rows();
  for (std::size_t g = 0; g < uses_.size(); ++g) uses_[g].hits += pass_.groups[g].rows * slots;
  slots_ += chosen.size();
}

void ResidentExperts::SettleUsage() {
  if (uses_.empty()) return;
  ledger_.Settle(pass_, usage(), uses_);
  uses_.assign(uses_.size(), {});
}

ExpertUsage ResidentExperts::UsageOf(RequestId request) {
  SettleUsage();
  return ledger_.Of(request);
}

void ResidentExperts::ForgetRequest(RequestId request) {
  SettleUsage();
  ledger_.Forget(request);
}

void ResidentExperts::Ask(const ExpertBatch& batch) {
  const std::vector<Mlp>& experts = weights_.layers[batch.layer].moe.experts;
  ready_.clear();
  for (const ExpertDemand& demand : batch.demands) {
    ready_.push_back({.expert = demand.expert, .answer = experts[demand.expert]});
  }
  given_ = false;
  asks_ += batch.demands.size();
}

Result<std::span<const ReadyExpert>> ResidentExperts::Take(bool wait) {
  TROUPE_CHECK(!wait || !given_);
  if (std::exchange(given_, true)) return std::span<const ReadyExpert>();
  return std::span<const ReadyExpert>(ready_);
}

}  // namespace troupe
