// A card's part in a model's plan: which device somebody asked for, how many experts its memory
// holds, how they lie in it, and what the card takes of both memories. The device itself:
// gpu/worker.h; who answers what on it: card_experts.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "gpu/usable_gpu.h"
#include "gpu/worker.h"
#include "model/config.h"
#include "model/expert_layout.h"

namespace troupe {

// What a card answers: what measured costs give it or, for tests, which a device's speed shall not
// decide about, whatever it holds, or besides whatever it can be sent at once.
enum class CardDuty : std::uint8_t { kByCosts, kAllItHolds, kAllItCan };

struct CardOptions {
  std::string choice = "none";     // as ChooseGpus takes it
  std::optional<Bytes> memory;     // of the device that is used; absent: most of it
  Nanos longest = 20'000'000'000;  // that an answer of the device is waited for
  Nanos longest_listing = kLongestGpuListing, longest_opening = kLongestGpuOpening;
  GpuDrivers drivers = DriversOfThisMachine();
  CardDuty duty = CardDuty::kByCosts;

  bool wanted() const { return choice != "none"; }
  bool by_name() const { return wanted() && choice != "auto"; }
};

// A device that may be used, with what it may be used for.
struct FoundCard {
  GpuInfo info;
  std::optional<TestedGpu> gpu;  // absent where nothing was to be opened
};

// How the experts of a layer lie in a slot: their panels, and their biases behind them.
class CardLayout {
 public:
  CardLayout() = default;
  CardLayout(const ExpertLayout& layout, bool biases);

  Bytes SlotBytes() const { return Bytes(biases_at_ + bias_count_ * sizeof(float)); }
  // The slot's bytes of an expert whose matrices have the layout's types.
  Bytes Fill(const Mlp& expert, std::span<std::byte> slot) const;
  bool Fits(const Mlp& expert) const;
  bool has_biases() const { return bias_count_ > 0; }
  // The expert in a slot, whose memory is the worker's to say.
  GpuMlp At(GateForm form) const;

 private:
  ExpertLayout layout_;
  std::uint64_t biases_at_ = 0, bias_count_ = 0;
};

struct CardPlan {
  std::string name;
  Bytes budget;
  bool shares_memory = false;  // with the machine
  GpuWorkerShape shape;
  std::uint32_t experts = 0;  // of the model
  bool holds_all() const { return shape.slots >= experts; }

  Bytes total() const { return GpuWorker::DeviceBytes(shape) + shape.slots * shape.slot; }
};

// What a device may be asked to hold if nobody says: most of it, as its driver and the screen take
// a part that no driver tells of.
Bytes DefaultCardBudget(const GpuInfo& info);

// For passes of `chunk` rows at most. kInvalidArgument: the budget has no room for two experts.
Result<CardPlan> PlanCard(const ModelConfig& config, const ExpertLayouts& layouts,
                          const GpuInfo& info, const CardOptions& options, std::uint32_t chunk);
// What it takes of the host's memory in passes of `chunk` rows.
Bytes CardHostBytes(const CardPlan& plan, const ModelConfig& config, std::uint32_t chunk);
// What the worker is made with for passes of `chunk` rows.
GpuWorkerShape ShapeFor(const CardPlan& plan, const ModelConfig& config, std::uint32_t chunk);

std::string Describe(const CardPlan& plan);

// The device that was asked for, opened and tested where `open`. Nothing: `auto` finds no card
// here; `why` then says so if a card may be here all the same, and a warning if its driver hangs.
Result<std::optional<FoundCard>> FindCard(const CardOptions& options, const ExpertLayouts& layouts,
                                          bool open, std::string& why);

// The device at work, with room for what it is to hold; the same warning.
Result<std::unique_ptr<GpuWorker>> StartCard(TestedGpu gpu, const GpuWorkerShape& shape,
                                             const CardOptions& options);

}  // namespace troupe
