// The slots of memory that experts are loaded into, and the loader that fills them: what MissFlow
// decides about behind its port. A slot is as large as a full copy and holds either copy.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "expert/flow/load_port.h"
#include "expert/flow/medium_speed.h"
#include "io/aligned_buffer.h"
#include "model/expert_layout.h"
#include "runtime/expert_peers.h"
#include "store/expert_loader.h"

namespace troupe {

// The experts once more at lower precision; without a store there are none.
struct LowExperts {
  ExpertLayouts layouts = {};
  std::unique_ptr<ExpertStore> store = nullptr;
};

// Experts whose slots' bytes came another way than from the store.
using FetchedExperts = std::map<ExpertId, std::vector<std::byte>>;

class SlotLoads final : public LoadPort {
 public:
  // A slot's size for these layouts.
  static Bytes SlotBytes(const ExpertLayouts& layouts);

  // Pool and clock must outlive it.
  static Result<std::unique_ptr<SlotLoads>> Create(
      ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, LowExperts low,
      std::uint32_t slots, std::unique_ptr<AsyncReader> reader, ThreadPool& pool,
      const Clock& clock, const LoaderOptions& options, MeasuredCosts costs);

  void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) override;
  void Promote(ExpertId id) override { loader_->Promote(id); }
  CallOff Cancel(ExpertId id) override { return loader_->Cancel(id); }
  // By what was read lately.
  double SecondsFor(std::uint32_t layer) const override;
  AnswerCosts CostsFor(std::uint32_t layer) const override;
  Bytes BytesLeft(ExpertId id) const override { return loader_->BytesLeft(id); }
  double SecondsLeft(ExpertId id) const override;
  double SecondsHeld(std::uint32_t layer) const override;
  bool idle() const override { return loader_->under_way() == 0 && copied_.empty(); }

  // From now on these are copied in place of being read. Null: all are read.
  void set_fetched(const FetchedExperts* fetched) { fetched_ = fetched; }
  // Until at least one load has ended, which a copy has at once.
  void Wait();
  // Loads that ended since the last call.
  std::vector<LoadEnd> TakeEnded();

  // Copies what lies in a slot to another one, as large.
  void Move(std::uint32_t from, std::uint32_t to);
  // The slots from that one on, into which nothing is being loaded: their memory goes back to the
  // system, until something is loaded there again. False: it does not.
  bool GiveBackFrom(std::uint32_t slot);
  // The slots behind these have no memory.
  std::uint32_t slots_with_memory() const { return with_memory_; }
  Bytes slot_bytes() const { return Bytes(slot_bytes_); }

  // From now on its costs name them, for layers of `experts`. They must outlive it.
  void set_peers(ExpertPeers& peers, std::uint32_t experts) {
    peers_ = &peers;
    experts_ = experts;
  }

  // Whether costs name peers from now on.
  void set_shares(bool shares) { shares_ = shares; }

  // An expert that lies in a slot.
  Mlp WeightsIn(std::uint32_t slot, ExpertId id, ExpertCopy copy) const;
  // Whether gate and up of an expert that is being loaded into a slot can be computed with
  // (ExpertLoader::HasBegun).
  bool HasBegun(ExpertId id) const {
    return loader_->HasBegun(id, Bytes(layouts_[id.layer].matrices[2].slot_offset));
  }
  // What the experts of each layer have beside what is loaded. Before any is asked for.
  void set_extras(std::vector<ExpertExtras> extras) { extras_ = std::move(extras); }
  Bytes SourceBytes(std::uint32_t layer, ExpertCopy copy) const;

  // 0: nothing was read yet.
  double recent_bytes_per_second() const { return speed_.measured(); }

  const ExpertLayouts& layouts() const { return layouts_; }
  const ExpertStore& store() const { return *store_; }
  ExpertLoader& loader() { return *loader_; }
  const ExpertLoader& loader() const { return *loader_; }

 private:
  SlotLoads(ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, LowExperts low,
            MeasuredCosts costs, const Clock& clock)
      : layouts_(std::move(layouts)),
        store_(std::move(store)),
        low_(std::move(low)),
        costs_(std::move(costs)),
        clock_(clock) {}

  const ExpertLayout& LayoutOf(std::uint32_t layer, ExpertCopy copy) const {
    return (copy == ExpertCopy::kLow ? low_.layouts : layouts_)[layer];
  }

  ExpertLayouts layouts_;
  std::vector<ExpertExtras> extras_;  // by layer; empty: there is nothing beside
  std::unique_ptr<ExpertStore> store_;
  LowExperts low_;
  // Of the layer that asks, as far as peers can be asked at all.
  void AddPeers(std::uint32_t layer, AnswerCosts& costs) const;
  void AddLateSpeed(AnswerCosts& costs) const;

  const FetchedExperts* fetched_ = nullptr;
  std::vector<LoadEnd> copied_;
  MeasuredCosts costs_;
  const Clock& clock_;
  MediumSpeed speed_;
  Bytes held_;  // reads of loads ahead that are under way at once
  NoPeers nobody_;
  ExpertPeers* peers_ = &nobody_;
  bool shares_ = true;
  std::uint32_t experts_ = 0;                                    // of a layer
  mutable std::vector<std::span<const std::uint32_t>> holders_;  // by expert, of AddPeers
  AlignedBuffer slots_;
  std::size_t slot_bytes_ = 0;
  std::uint32_t with_memory_ = 0;
  std::unique_ptr<ExpertLoader> loader_;
};

}  // namespace troupe
