// Reads ahead what a draft has named: a draft by the experts in memory alone
// (runtime/draft_by_residents.h) leaves the others out, and the pass that checks it most likely
// needs them. So its routers' choices are a forecast as many tokens ahead as it is long. They are
// read in the order in which the check will ask: while the draft goes on, and after that where
// nothing is demanded. What the draft used stays in its slot until its layer has asked. All other
// reading ahead is left to another Prefetching, which hears nothing of drafts. Pure, as that is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/expert_choice.h"
#include "expert/prefetch/ahead_loads.h"
#include "expert/prefetch/prefetching.h"

namespace troupe {

class NamedAhead final : public Prefetching {
 public:
  // Loads of named experts that are under way together: more would wait for each other, and each
  // has taken a slot.
  static constexpr std::size_t kMostUnderWay = 2;

  static Bytes BytesFor(ExpertGrid grid);

  // The cache must outlive it.
  NamedAhead(ExpertCache& cache, std::unique_ptr<Prefetching> others);

  // A draft's token goes through the layers. The names of drafts add up until a pass of the text
  // begins.
  void OnDraftPass();
  // What a router chose for it, in the order of the layers.
  void OnDraftRouted(std::uint32_t layer, std::span<const ExpertChoice> chosen);
  // Experts that are named, and that no layer has asked for yet.
  std::size_t named() const { return names_.size(); }

  std::uint32_t forecast_layers() const override { return others_->forecast_layers(); }
  bool forecasts_with_answers() const override { return others_->forecasts_with_answers(); }
  void OnPassBegins(const PassFacts& pass) override;
  void OnScores(std::uint32_t layer, std::span<const float> scores) override {
    others_->OnScores(layer, scores);
  }
  void OnGuessesChecked(std::span<const std::uint32_t> right) override {
    others_->OnGuessesChecked(right);
  }
  void OnLayerAsks(const LayerChoices& choices, Nanos now) override;
  void OnGuessRight(const LayerChoices& choices) override { others_->OnGuessRight(choices); }
  void OnFound(ExpertId id, Residence residence) override;
  void OnMisses(std::uint32_t misses, double load_seconds) override {
    others_->OnMisses(misses, load_seconds);
  }
  void OnPause() override { others_->OnPause(); }
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    others_->OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override {
    others_->OnForecast(layer, ahead, forecast);
  }
  void OnLink(const LinkNow& link) override { others_->OnLink(link); }
  std::optional<ExpertId> Next(std::size_t under_way) override;
  bool is_sure() const override { return others_->is_sure(); }
  void OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) override;
  void OnNoSlot(ExpertId id) override;
  void OnLoaded(ExpertId id) override;
  void Release(std::uint32_t layer) override;
  void ReleaseAll() override;
  bool IsWanted(ExpertId id) const override { return IsNamed(id) || others_->IsWanted(id); }
  bool IsAhead(ExpertId id) const override { return loads_.Has(id) || others_->IsAhead(id); }
  bool IsForecastInTail(ExpertId id, double share) const override {
    return !IsNamed(id) && others_->IsForecastInTail(id, share);
  }
  MissForesight ForesightOf(ExpertId id, bool under_way, double load_seconds) const override {
    return others_->ForesightOf(id, under_way, load_seconds);
  }
  void OnEvicted(ExpertId id, bool on_demand) override;
  void OnFailed(ExpertId id) override;
  void OnCancelled(ExpertId id) override;

  // With the others'.
  PrefetchStats stats() const override;
  std::uint64_t waiting() const override { return loads_.count() + others_->waiting(); }
  std::uint64_t left_out() const override { return others_->left_out(); }

 private:
  bool IsNamed(ExpertId id) const { return is_named_[grid_.Index(id)]; }
  bool IsKept(ExpertId id) const;
  void Keep(ExpertId id);
  void ForgetName(ExpertId id);
  void ForgetNames(std::uint32_t layer);

  ExpertCache& cache_;
  ExpertGrid grid_;
  std::unique_ptr<Prefetching> others_;
  bool drafting_ = false;        // no pass of the text has begun since the draft did
  std::vector<ExpertId> names_;  // by layer, and of a layer as they came
  std::vector<bool> is_named_;   // by index in the grid
  std::vector<ExpertId> fresh_;  // begun by the last draft, of layers that have not asked since
  std::vector<ExpertCache::Pin> kept_;
  AheadLoads loads_;
  PrefetchStats stats_;
};

}  // namespace troupe
