#include "model/resident_experts.h"

#include <utility>

namespace troupe {

void ResidentExperts::OnPassBegins(const PassFacts& pass) {
  if (!ledger_.is_settled()) SettleUsage();
  ledger_.OnPassBegins(pass);
  uses_.assign(pass.groups.size(), {});
}

void ResidentExperts::OnRouted(std::uint32_t, std::span<const float>,
                               std::span<ExpertChoice> chosen) {
  const PassFacts& pass = ledger_.pass();
  if (pass.rows() == 0) return;
  const std::size_t slots = chosen.size() / pass.rows();
  for (std::size_t g = 0; g < uses_.size(); ++g) uses_[g].hits += pass.groups[g].rows * slots;
  slots_ += chosen.size();
}

void ResidentExperts::SettleUsage() {
  ledger_.Settle(usage(), uses_);
  uses_.assign(uses_.size(), {});
}

ExpertUsage ResidentExperts::EndRequest(RequestId request) {
  if (!ledger_.is_settled()) SettleUsage();
  return ledger_.End(request);
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
