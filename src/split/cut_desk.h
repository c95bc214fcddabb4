// The prompts of an end that are cut between two layers, all together: the lane of its own layers,
// what crossing costs as measured here, which cut is the best, and what became of those that were
// made. On the loop's thread. Design: docs/design/end-cloud.md.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/part_lane.h"
#include "split/cloud_source.h"
#include "split/codec/code_cost.h"
#include "split/codec/cut_basis.h"
#include "split/codec/cut_file.h"
#include "split/cut_run.h"
#include "split/flow/cut_plan.h"
#include "split/flow/place_costs.h"
#include "split/growing_pause.h"

namespace troupe {

struct CutOptions {
  std::size_t tokens = 0;              // of cut prompts at a time; 0: none is cut
  std::optional<std::uint32_t> layer;  // always before this one; absent: where it is best
  std::optional<std::size_t> chunk;    // tokens at a time; absent: as many as is best
  StateCode code;                      // of rows; requests that want exactness cross exactly
  // By layer, in place of that one code: rows cross by one of them where the link makes it worth a
  // loss and the time to write and read them, and exactly elsewhere.
  std::map<std::uint32_t, std::vector<TriedCode>> by_link = {};
  std::optional<double> most_loss = {};    // of perplexity, that each of these loses
  std::vector<CutBasis> bases;             // that were fitted
  std::vector<std::uint32_t> before = {};  // of any layer: those that are looked at; empty: some
};

// Layers that prompts of a model are cut before where nothing else is said.
std::vector<std::uint32_t> UsualCuts(std::uint32_t layers);
// Of the end's part: what its lane may run.
PartShape EndPartOf(std::uint32_t layers, const CutOptions& options);
// For the memory plan: the end's keys and values, and what of these and of rows waits for the link.
Bytes CutBytesOfEnd(const ModelConfig& config, const CutOptions& options, KvType type,
                    std::uint32_t context);

struct CutState {
  CutCounts counts;
  double seconds = 0;         // in which a prompt was cut
  std::size_t under_way = 0;  // prompts
  double bytes_a_second = 0;  // of the link, as measured; 0: not yet
  PartCounters lane;
};

class CutDesk final : public CutWorld {
 public:
  // What cuts depend on beside what they have measured themselves; 0: not measured.
  struct Facts {
    double own_read_seconds = 0, cloud_read_seconds = 0;  // a token of the whole model
    double own_reads_seconds = 0;  // of prompts that are read whole at the end before
    // For others there: all, and prompts that are read whole alone.
    double cloud_wait_seconds = 0, cloud_reads_seconds = 0;
    double round_trip_seconds = 0;
    std::size_t cloud_tokens = 0;  // that the cloud takes of cut prompts; 0: none
    bool cloud_goes_on = false;    // also of answers of more than one token
  };
  using Say = std::function<void(const std::string& line)>;

  // All must outlive it but the model's thread, on which it may be let go of; `say` and `explain`
  // may be null. kInvalidArgument: no such cut, or no such code of it.
  static Result<std::unique_ptr<CutDesk>> Create(Model& model, const Clock& clock,
                                                 CloudSource& cloud, PostToLoop post,
                                                 CutOptions options, Say say, Say explain);
  ~CutDesk() override;

  void SetFacts(const Facts& facts) { facts_ = facts; }
  // For a prompt and its answer; absent: it is not cut.
  std::optional<CutPlan> Plan(const AnswerTask& task) const;
  // Whether rows are known to lose no more than that of perplexity. Any thread.
  bool KeepsTo(double most_loss) const {
    return options_.most_loss && *options_.most_loss <= most_loss;
  }
  // Whether rows may cross by a code that is not exact. Any thread.
  bool loses() const { return loses_; }
  // What the end's engine still has to compute of those that are under way.
  double LeftSeconds() const;
  // Whether hardly any was cut yet, so that nobody can say what it takes.
  bool is_new() const { return !meter_.measured() && counts_.begun < kTrials; }
  // `ask`: without a cut. exact: whatever code was asked for.
  TokenSource::Stop Start(const RunAsk& ask, bool exact, const CutPlan& plan, RunEvents events);
  void OnTime();
  CutState State() const;

  // Whether the end's engine has rows of these prompts; calls each time that it gets some or is
  // done with them.
  bool computes() const { return work_->pieces > 0; }
  void TellOfWork(std::function<void()> tell) { work_->tell = std::move(tell); }

  // CutWorld
  Nanos Now() const override { return clock_.Now(); }
  std::uint32_t layers() const override { return layers_; }
  double RoundTripSeconds() const override { return facts_.round_trip_seconds; }
  Result<RunLower> OpenLower(std::uint32_t layer, std::size_t tokens, bool keys) override;
  Result<StateEncoder> EncoderFor(const CutPlan& plan, bool exact) override;
  void OnEncoded(const CutPlan& plan, const EncodedRows& encoded) override;
  std::uint64_t BasisOf(std::uint32_t layer, const StateCode& code) const override;
  TokenSource::Stop StartFar(const RunAsk& ask, RunEvents events) override;
  TokenSource::Stop SendStates(std::uint64_t name, std::span<const std::byte> message,
                               OnReceipt on_receipt) override {
    return cloud_.SendStates(name, message, std::move(on_receipt));
  }
  CutMeter& meter() override { return meter_; }
  CutCounts& counts() override { return counts_; }
  void OnCutOver(const Status& status) override;
  void Report(const std::string& line) override {
    if (explain_) explain_(line);
  }

 private:
  static constexpr std::uint64_t kTrials = 3;
  class Door;  // to the loop, closed when the desk goes

  CutDesk(const Clock& clock, CloudSource& cloud, std::shared_ptr<Door> door, CutOptions options,
          std::uint32_t layers, std::uint32_t width, std::size_t most_rows);
  CutFacts FactsNow(const StateCode& code) const;
  std::vector<ShorterRows> ShorterNow() const;
  double RowBytesBefore(std::uint32_t layer, const StateCode& code) const;
  std::span<const TriedCode> CodesByLink(std::uint32_t layer) const;
  Status MeasureCodes();
  bool MaySendKeys() const;
  // Once, where prompts are always to be cut.
  void SayIfTooLong(std::size_t tokens) const;
  // Of rows that cross exactly, or by a code.
  const std::shared_ptr<const CutBasis>& Basis(std::uint32_t layer, bool exact) const;

  const Clock& clock_;
  CloudSource& cloud_;
  const std::shared_ptr<Door> door_;
  const CutOptions options_;
  const std::uint32_t layers_, width_;
  const std::size_t most_rows_;  // of a pass
  std::vector<std::uint32_t> before_;
  mutable std::map<std::uint32_t, std::shared_ptr<const CutBasis>> plain_, fitted_;  // by layer
  // By layer and code: cut prompts have copies, with the same table.
  std::map<std::pair<std::uint32_t, StateCode>, StateEncoder> encoders_;
  // Of by_link's codes on this machine, by layer and code.
  struct Known {
    CodeCost cost;
    double row_bytes = 0;  // as sent
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Known> known_;
  bool loses_ = false;    // as it was created
  double row_bytes_ = 0;  // as sent, of a lossy code without a choice; 0: none was
  Say say_, explain_;
  std::unique_ptr<PartLane> lane_;
  struct Work {
    std::size_t pieces = 0;
    std::function<void()> tell = [] {};
  };
  const std::shared_ptr<Work> work_ = std::make_shared<Work>();  // may outlive the desk
  Facts facts_;
  CutMeter meter_;
  CutCounts counts_;
  std::uint64_t last_name_, process_;  // drawn: nobody else can guess them
  std::vector<std::weak_ptr<CutRun>> runs_;
  std::size_t under_way_ = 0;
  Nanos any_since_ = 0;  // while one is
  double seconds_ = 0;
  GrowingPause pause_;
  std::string told_;
  mutable bool said_too_long_ = false;
};

}  // namespace troupe
