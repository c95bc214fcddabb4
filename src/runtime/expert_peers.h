// Other machines that compute experts for this one, as a pass sees them: whom it may ask instead of
// its disk, and what comes back. Who they are, and what happens when one does not answer, is
// decided in src/cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "expert/expert_id.h"
#include "expert/flow/miss_plan.h"
#include "expert/flow/open_demand.h"
#include "expert/row_form.h"
#include "model/expert_source.h"

namespace troupe {

// All from the thread that runs the passes.
class ExpertPeers {
 public:
  // An expert's answers, in the order of ExpertBatch::RowsOf.
  struct Rows {
    std::uint32_t expert = 0;
    RowForm form = RowForm::kFloat;  // in which they came: only floats are what the expert gives
    std::span<const float> values;
  };
  // What has come of a layer's misses: answers, and those that no peer will answer in time. These
  // may be answered all the same before their load ends.
  struct News {
    std::span<const Rows> answered;
    std::span<const std::uint32_t> to_load;

    bool empty() const { return answered.empty() && to_load.empty(); }
  };

  virtual ~ExpertPeers() = default;

  // Who may be asked now, and what that costs. Valid until the next call.
  virtual std::span<const Place> Places() = 0;
  // Those of them that hold the expert, as indices. Valid until the next call of Places.
  virtual std::span<const std::uint32_t> HoldersOf(ExpertId id) const = 0;

  // Of a pass, whose misses may be asked for: more than that go to the disk.
  virtual std::uint32_t most_rows() const = 0;

  // What a layer needs, wherever it lies, and in which form it takes answers: before anything is
  // asked, and before Places.
  virtual void OnAsked(const ExpertBatch& batch, RowForm answers) = 0;
  // The layer's misses that others compute, each by the place that was chosen. What is asked for
  // comes up in Take, each expert once. Nothing else is waited for.
  virtual void Ask(const ExpertBatch& batch, std::span<const AnsweredElsewhere> misses) = 0;
  // A load has failed. Whether a peer that holds the expert is asked for it, which may be once a
  // layer.
  virtual bool AskInPlaceOfDisk(const ExpertBatch& batch, std::uint32_t expert) = 0;
  // What was to be loaded has come: nobody need answer it any more.
  virtual void OnLoaded(std::uint32_t expert) = 0;
  // What has come since the last call. Valid until the next call of Take, Ask or Forget.
  virtual News Take() = 0;
  // Whether Take will have more.
  virtual bool waiting() const = 0;
  // Until Take has something, or so long.
  virtual void Wait(std::optional<Nanos> longest) = 0;
  // Nothing is waited for any more.
  virtual void Forget() = 0;
};

class NoPeers final : public ExpertPeers {
 public:
  std::span<const Place> Places() override { return {}; }
  std::span<const std::uint32_t> HoldersOf(ExpertId) const override { return {}; }
  std::uint32_t most_rows() const override { return 0; }
  void OnAsked(const ExpertBatch&, RowForm) override {}
  void Ask(const ExpertBatch&, std::span<const AnsweredElsewhere>) override {}
  bool AskInPlaceOfDisk(const ExpertBatch&, std::uint32_t) override { return false; }
  void OnLoaded(std::uint32_t) override {}
  News Take() override { return {}; }
  bool waiting() const override { return false; }
  void Wait(std::optional<Nanos>) override {}
  void Forget() override {}
};

}  // namespace troupe
