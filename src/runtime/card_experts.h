// Experts of which some lie in a card's memory, in front of another source that has all of them.
// Whatever a layer asks for is divided: the card answers rows of experts that it has, to the byte
// what the processor would give, while the processor computes what the other source gives. Popular
// experts are copied into the card as the other source gives them. Who answers what, and which
// experts are worth a slot, is decided in expert/card; the device's work is gpu/worker.h's.
//
// A card that fails or hangs loses nothing: its experts are asked of the other source, one line
// says what happened, and the processor goes on alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "expert/card/card_lanes.h"
#include "expert/card/card_slots.h"
#include "expert/flow/usage_ledger.h"
#include "gpu/worker.h"
#include "model/expert_source.h"
#include "runtime/card_plan.h"

namespace troupe {

// What a card does, as of the last pass.
struct CardReport {
  std::string name;
  Bytes memory;  // that it takes of the card
  std::uint32_t slots = 0, held = 0, on_the_way = 0;
  std::uint64_t evictions = 0, trials = 0;
  double card_seconds = 0, processor_seconds = 0;  // an expert for one row, as measured; 0: not yet
  double copy_seconds = 0;
  Status status;  // by what it has failed
};

class CardExperts final : public ExpertSource {
 public:
  struct Options {
    ExpertGrid grid;
    GateForm form = GateForm::kSilu;
    bool biases = false;
    std::uint32_t width = 0;
    double shared_experts = 0;  // their width, counted in routed experts
    CardDuty duty = CardDuty::kByCosts;
    // How long it takes the other source to have an expert's weights; null: they are in memory.
    std::function<double(ExpertId)> seconds_away;
    // Is told of what the card answers for from now on, and no longer; null: nobody wants to know.
    std::function<void(ExpertId, bool covered)> tell;
  };

  // The layouts are those of the other source. The clock must outlive it.
  CardExperts(std::unique_ptr<ExpertSource> other, std::unique_ptr<GpuWorker> worker,
              const ExpertLayouts& layouts, Options options, const Clock& clock);

  void OnPassBegins(const PassFacts& pass) override;
  void OnRouted(std::uint32_t layer, std::span<const float> scores,
                std::span<ExpertChoice> chosen) override;
  void OnGuessesChecked(std::span<const std::uint32_t> right) override {
    other_->OnGuessesChecked(right);
  }
  void Ask(const ExpertBatch& batch) override;
  std::uint32_t forecast_layers() const override { return other_->forecast_layers(); }
  bool forecasts_with_answers() const override { return other_->forecasts_with_answers(); }
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    other_->OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override {
    other_->OnForecast(layer, ahead, forecast);
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override;
  void Advance() override;

  ExpertUsage usage() const override;
  void SettleUsage() override;
  ExpertUsage TakeUsage(RequestId request) override;
  ExpertUsage EndRequest(RequestId request) override;

  CardReport report() const;
  // While others than the experts that were chosen may answer, the card does nothing.
  void set_rests(bool rests) { rests_ = rests; }

 private:
  struct Pending {
    GpuWorker::JobId job = 0;
    std::vector<ExpertDemand> asks;
    std::vector<std::size_t> first_answers;
    std::uint32_t rows = 0;
    bool copied = false;
  };

  ExpertUsage OwnUsage() const;
  void Tell(ExpertId id, bool covered) const {
    if (options_.tell) options_.tell(id, covered);
  }
  std::uint32_t TakeSlot(ExpertId id);
  void OnCopied(ExpertId id, bool well);
  void TakeCopied();
  void Forget();
  void Fail(const Status& why);
  void Divide(const ExpertBatch& batch);
  void SetRows();
  GpuWorker::Ask AskOf(const ExpertDemand& demand, std::uint32_t slot);
  void BeginOnCard(std::vector<ExpertDemand> asks);
  bool CopyAndAnswer(const ExpertDemand& demand, const Mlp& weights);
  void CopyBehind(std::uint32_t expert, const Mlp& weights);
  std::optional<Bytes> StageCopy(ExpertId id, const Mlp& weights);
  void GiveFromCard(bool wait);
  Status GiveFromOther(bool wait);
  void AskOtherForFailed();
  void NoteProcessor();

  std::unique_ptr<ExpertSource> other_;
  std::unique_ptr<GpuWorker> worker_;
  std::vector<CardLayout> layouts_;
  const Options options_;
  const Clock& clock_;
  CardSlots slots_;
  CardLanes lanes_;

  bool works_ = true, drafts_ = false, rests_ = false;
  std::uint64_t hits_ = 0, rows_ = 0, copies_ = 0, failures_ = 0;
  std::vector<std::optional<ExpertId>> on_the_way_;  // by slot: copies that nobody waits for
  // What copies have taken of the time of passes, and since when.
  Nanos first_ask_ = 0;
  double copying_seconds_ = 0;
  double staging_seconds_ = 0;  // of the last copy

  // The layer under way.
  std::optional<ExpertBatch> batch_;
  std::vector<ExpertDemand> of_other_;
  std::vector<std::uint32_t> to_copy_;  // experts that the card answers once they are there
  std::size_t left_of_other_ = 0;
  std::vector<Pending> pending_;
  std::vector<ExpertDemand> failed_;
  bool rows_set_ = false;
  std::size_t next_answer_ = 0;
  std::vector<ReadyExpert> ready_;
  // What the processor was given last, and when.
  Nanos given_at_ = 0;
  std::uint32_t given_experts_ = 0, given_rows_ = 0;
  bool shared_runs_ = false;

  UsageLedger ledger_;
  std::vector<GroupUse> uses_;
};

}  // namespace troupe
