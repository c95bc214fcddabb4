// The half of MissFlow that begins loads and takes their ends.
#include <algorithm>

#include "expert/flow/miss_flow.h"

namespace troupe {

void MissFlow::Load(ExpertId id, ExpertCopy copy, const ExpertCache::Admission& admission,
                    Urgency urgency) {
  if (admission.evicted) prefetch_->OnEvicted(*admission.evicted, urgency == Urgency::kDemand);
  port_.Begin(id, admission.slot, copy, urgency);
}

// False if the expert has to wait for a slot.
bool MissFlow::PlaceOne(OpenDemand& demand, ExpertId id) {
  WaitingMiss& miss = demand.waiting[demand.Find(id)];
  switch (cache_.Find(id)) {
    case Residence::kLoading:  // for another demand
      miss.event.joined = true;
      miss.event.slot = cache_.SlotOf(id);
      if (demand.whose != DemandOf::kHolding) port_.Promote(id);
      return true;
    case Residence::kResident:
      if (cache_.CopyOf(id) <= miss.least) {  // another demand brought it
        AddReady(demand, id, miss.event.tokens);
        return true;
      }
      if (!cache_.GiveUp(id)) return false;  // others compute with its low copy
      prefetch_->OnEvicted(id);
      break;
    case Residence::kAbsent:
      break;
  }
  const auto admission = cache_.Admit(id, miss.load);
  if (!admission) return false;
  miss.event.slot = admission->slot;
  miss.event.evicted = admission->evicted;
  const bool is_urgent = demand.whose != DemandOf::kHolding;
  Load(id, miss.load, *admission, is_urgent ? Urgency::kDemand : Urgency::kPrefetch);
  return true;
}

void MissFlow::Place() {
  for (const auto& demand : open_) {
    if (!demand->error.ok()) continue;
    std::size_t placed = 0;
    std::vector<ExpertId>& unplaced = demand->unplaced;
    while (placed < unplaced.size() && PlaceOne(*demand, unplaced[placed])) ++placed;
    unplaced.erase(unplaced.begin(), unplaced.begin() + static_cast<std::ptrdiff_t>(placed));
  }
}

void MissFlow::Continue() {
  Place();
  Prefetch();
}

LinkNow MissFlow::Link() const {
  LinkNow link{.now = now_};
  for (const ExpertId id : ahead_) link.queued_seconds += port_.SecondsLeft(id);
  const PassFacts& pass = choices_.pass();
  if (pass.HasExperts()) link.held_seconds = port_.SecondsHeld(pass.first_layer);
  return link;
}

// Once everything that was asked for has its slot.
void MissFlow::Prefetch() {
  for (const auto& demand : open_) {
    if (demand->error.ok() && !demand->unplaced.empty()) return;
  }
  const double tail = choices_.pass().HasPrompt() ? options_.low_copies.prefill_share : 0;
  while (true) {
    prefetch_->OnLink(Link());
    const std::optional<ExpertId> id = prefetch_->Next(ahead_.size());
    if (!id) return;
    // A guess, like the prefetch itself: if the layer asks for more, it is read again.
    const bool low = tail > 0 && prefetch_->IsForecastInTail(*id, tail);
    const ExpertCopy copy = low ? ExpertCopy::kLow : ExpertCopy::kFull;
    const auto admission = cache_.Admit(*id, copy);
    if (!admission) return prefetch_->OnNoSlot(*id);  // later there may be one
    Load(*id, copy, *admission, prefetch_->is_sure() ? Urgency::kForeseen : Urgency::kPrefetch);
    prefetch_->OnLoadBegins(*id, admission->evicted);
    ahead_.push_back(*id);
  }
}

void MissFlow::OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) {
  if (drafts()) return;
  prefetch_->OnForecast(layer, ahead, forecast);
  CancelStalePrefetches();
}

void MissFlow::CancelStalePrefetches() {
  std::erase_if(ahead_, [&](ExpertId id) {
    if (!prefetch_->IsAhead(id)) return true;  // asked for: a demand by now
    if (prefetch_->IsWanted(id)) return false;
    const CallOff called_off = port_.Cancel(id);
    if (called_off == CallOff::kTooLate) return false;
    if (called_off == CallOff::kGone) cache_.Abandon(id);
    prefetch_->OnCancelled(id);
    return true;
  });
}

// Among those without a slot, where it would be had it never had one: experts that are given in
// order must not wait for one that the others' slots are kept from.
void MissFlow::PutBack(OpenDemand& demand, ExpertId id) {
  ++begun_anew_;
  const std::size_t place = demand.Find(id);
  const auto after = std::ranges::find_if(
      demand.unplaced, [&](ExpertId other) { return demand.Find(other) > place; });
  demand.unplaced.insert(after, id);
}

void MissFlow::OnLoadsEnded(std::span<const LoadEnd> ends, Nanos now) {
  now_ = now;
  for (const LoadEnd& end : ends) {
    std::erase(ahead_, end.id);
    if (end.status.ok()) {
      OnLoaded(end.id, now);
    } else {
      OnFailed(end.id, end.status);
    }
  }
}

void MissFlow::OnFailed(ExpertId id, const Status& status) {
  cache_.Abandon(id);
  prefetch_->OnFailed(id);
  for (const auto& demand : open_) {
    if (demand->Find(id) == demand->waiting.size()) continue;
    if (std::ranges::find(demand->unplaced, id) != demand->unplaced.end()) continue;
    if (status.code() == Code::kCancelled) {
      PutBack(*demand, id);  // it was wanted again before what was under way had come
    } else if (demand->error.ok()) {
      demand->error = status;
    }
  }
}

void MissFlow::OnLoaded(ExpertId id, Nanos now) {
  const ExpertCopy copy = cache_.CopyOf(id);
  const auto waiting = [id](OpenDemand& demand) -> WaitingMiss* {
    const std::size_t at = demand.error.ok() ? demand.Find(id) : demand.waiting.size();
    return at == demand.waiting.size() ? nullptr : &demand.waiting[at];
  };
  bool wanted = false, enough = false;
  for (const auto& demand : open_) {
    const WaitingMiss* miss = waiting(*demand);
    wanted = wanted || miss != nullptr;
    enough = enough || (miss != nullptr && copy <= miss->least);
  }
  if (wanted && !enough) {
    cache_.Abandon(id);  // read ahead in the low copy, and more popular than expected
  } else {
    cache_.OnLoaded(id);
  }
  if (!wanted) prefetch_->OnLoaded(id);
  for (const auto& demand : open_) {
    WaitingMiss* miss = waiting(*demand);
    if (miss == nullptr) continue;
    const bool placed = std::ranges::find(demand->unplaced, id) == demand->unplaced.end();
    if (copy > miss->least) {
      if (placed) PutBack(*demand, id);
      continue;
    }
    std::erase(demand->unplaced, id);
    miss->event.load_seconds = static_cast<double>(now - miss->asked) * 1e-9;
    miss->event.low = copy == ExpertCopy::kLow;
    AddReady(*demand, id, miss->event.tokens);
  }
}

}  // namespace troupe
