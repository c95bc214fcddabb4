#include "runtime/card_plan.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "gpu/driver_call.h"

namespace troupe {
namespace {

constexpr std::uint32_t kLeastInCard = 2;
// Rows of a pass that the card takes: longer passes are the processor's.
constexpr std::uint32_t kMostCardRows = 2048;
// Matrices begin where a kernel reads 16 bytes at a time.
constexpr std::uint64_t kCardAlignment = 16;

std::vector<TensorType> TypesIn(const ExpertLayouts& layouts) {
  std::vector<TensorType> types;
  for (const ExpertLayout& layout : layouts) {
    if (layout.empty()) continue;
    for (const ExpertMatrix& matrix : layout.matrices) types.push_back(matrix.type);
  }
  std::ranges::sort(types);
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

std::array<const PanelMatrix*, 3> PanelsOf(const Mlp& expert) {
  return {&expert.gate, &expert.up, &expert.down};
}
std::array<const float*, 3> BiasesOf(const Mlp& expert) {
  return {expert.gate_bias, expert.up_bias, expert.down_bias};
}

}  // namespace

CardLayout::CardLayout(const ExpertLayout& layout, bool biases) : layout_(layout) {
  biases_at_ = AlignUp(layout.SlotBytes(), kCardAlignment);
  if (!biases) return;
  for (const ExpertMatrix& matrix : layout.matrices) bias_count_ += matrix.rows;
}

bool CardLayout::Fits(const Mlp& expert) const {
  const auto matrices = PanelsOf(expert);
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const ExpertMatrix& wanted = layout_.matrices[m];
    if (matrices[m]->type != wanted.type || matrices[m]->rows != wanted.rows ||
        matrices[m]->cols != wanted.cols || matrices[m]->factor != nullptr) {
      return false;
    }
  }
  return true;
}

Bytes CardLayout::Fill(const Mlp& expert, std::span<std::byte> slot) const {
  TROUPE_CHECK(Fits(expert) && slot.size() >= SlotBytes().count());
  layout_.CopySlot(expert, 0, slot.first(layout_.SlotBytes()));
  if (bias_count_ == 0) return SlotBytes();
  std::uint64_t at = biases_at_;
  const auto biases = BiasesOf(expert);
  for (std::size_t m = 0; m < biases.size(); ++m) {
    const std::size_t bytes = layout_.matrices[m].rows * sizeof(float);
    TROUPE_CHECK(biases[m] != nullptr);
    std::memcpy(slot.data() + at, biases[m], bytes);
    at += bytes;
  }
  return SlotBytes();
}

GpuMlp CardLayout::At(GateForm form) const {
  GpuMlp expert{.form = form};
  const std::array<GpuMatrix*, 3> matrices = {&expert.gate, &expert.up, &expert.down};
  const std::array<GpuVector*, 3> biases = {&expert.gate_bias, &expert.up_bias, &expert.down_bias};
  std::uint64_t at = biases_at_ / sizeof(float);
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const ExpertMatrix& matrix = layout_.matrices[m];
    *matrices[m] = {.type = matrix.type,
                    .rows = static_cast<std::uint32_t>(matrix.rows),
                    .cols = static_cast<std::uint32_t>(matrix.cols),
                    .at = matrix.slot_offset};
    if (bias_count_ > 0) biases[m]->at = at;
    at += matrix.rows;
  }
  return expert;
}

Bytes DefaultCardBudget(const GpuInfo& info) {
  constexpr Bytes kLeastLeft = 512_MiB;
  const Bytes left = std::max(kLeastLeft, Bytes(info.memory.count() / 10));
  return info.memory > left ? info.memory - left : Bytes(0);
}

GpuWorkerShape ShapeFor(const CardPlan& plan, const ModelConfig& config, std::uint32_t chunk) {
  GpuWorkerShape shape = plan.shape;
  shape.experts.rows = std::min(chunk, kMostCardRows);
  shape.answers = shape.experts.rows * config.moe.routing.top_k;
  return shape;
}

Result<CardPlan> PlanCard(const ModelConfig& config, const ExpertLayouts& layouts,
                          const GpuInfo& info, const CardOptions& options, std::uint32_t chunk) {
  CardPlan plan{.name = info.name,
                .budget = std::min(options.memory.value_or(DefaultCardBudget(info)), info.memory),
                .shares_memory = info.shares_memory};
  if (info.shares_memory && !options.memory) {
    return InvalidArgument(
        "{} has no memory of its own: --vram says how much it may take of the machine's",
        info.name);
  }
  Bytes slot;
  std::uint32_t ff = 0;
  for (const ExpertLayout& layout : layouts) {
    if (layout.empty()) continue;
    plan.experts += config.moe.routing.experts;
    slot = std::max(slot, CardLayout(layout, config.moe.biases).SlotBytes());
    ff = std::max(ff, static_cast<std::uint32_t>(layout.matrices[0].rows));
  }
  plan.shape.slot = Bytes(AlignUp(slot.count(), kCardAlignment));
  plan.shape.experts = {.width = config.width, .ff = ff};
  plan.shape = ShapeFor(plan, config, chunk);
  const Bytes beside = GpuWorker::DeviceBytes(plan.shape);
  const Bytes left = plan.budget > beside ? plan.budget - beside : Bytes(0);
  const Bytes least = beside + kLeastInCard * plan.shape.slot;
  if (left < kLeastInCard * plan.shape.slot || plan.shape.slot > info.largest_buffer) {
    return InvalidArgument("{}: {} hold no two experts; expected at least {} (--vram, --chunk)",
                           info.name, ToString(plan.budget), ToString(least));
  }
  plan.shape.slots =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(left / plan.shape.slot, plan.experts));
  plan.shape.slots = std::max(plan.shape.slots, kLeastInCard);
  return plan;
}

Bytes CardHostBytes(const CardPlan& plan, const ModelConfig& config, std::uint32_t chunk) {
  const GpuWorkerShape shape = ShapeFor(plan, config, chunk);
  return GpuWorker::HostBytes(shape) + (plan.shares_memory ? plan.total() : Bytes(0));
}

std::string Describe(const CardPlan& plan) {
  return fmt::format("{} holds {} of {} experts in {} of the {} it may take", plan.name,
                     plan.shape.slots, plan.experts, ToString(plan.total()), ToString(plan.budget));
}

namespace {

// For `auto` what has memory of its own: what experts gained elsewhere, memory would lose.
Result<std::size_t> LargestChosen(const CardOptions& options, std::span<const GpuInfo> infos) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::size_t> places, ChooseGpus(infos, options.choice));
  if (!options.by_name()) {
    std::erase_if(places, [&](std::size_t i) { return infos[i].shares_memory; });
  }
  if (places.empty()) {
    return Error(Code::kNotFound, "no driver has one with memory of its own{}", ButNoCuda(infos));
  }
  return *std::ranges::max_element(places, {},
                                   [&](std::size_t i) { return infos[i].memory.count(); });
}

// Of a card that nobody named: who did is given an error.
void WarnOfHungDriver(const CardOptions& options, const Status& status) {
  if (options.by_name() || status.code() != Code::kDeadlineExceeded) return;
  LogWarning("no card: {}; the processor goes on alone, with the same answers", status.message());
}

}  // namespace

Result<std::optional<FoundCard>> FindCard(const CardOptions& options, const ExpertLayouts& layouts,
                                          bool open, std::string& why) {
  // Drivers are loaded only where a card may be: on a machine without one, one that computes on the
  // processor would take memory for nothing.
  if (!options.wanted() || (!options.by_name() && !options.drivers.may_have_card())) {
    return std::optional<FoundCard>();
  }
  const auto find = [&]() -> Result<FoundCard> {
    TROUPE_ASSIGN_OR_RETURN(
        const std::vector<GpuInfo> infos,
        CallWithin(options.longest_listing, "which devices there are", options.drivers.list));
    TROUPE_ASSIGN_OR_RETURN(const std::size_t place, LargestChosen(options, infos));
    FoundCard found{.info = infos[place]};
    if (!open) return found;
    TROUPE_ASSIGN_OR_RETURN(
        found.gpu, CallWithin(options.longest_opening, found.info.name,
                              [place, open_at = options.drivers.open, types = TypesIn(layouts)] {
                                return open_at(place, types);
                              }));
    return found;
  };
  Result<FoundCard> found = find();
  if (found.ok()) return std::optional<FoundCard>(*std::move(found));
  if (options.by_name()) return Status(found.status()).WithContext("--gpu " + options.choice);
  why = found.status().message();
  WarnOfHungDriver(options, found.status());
  return std::optional<FoundCard>();
}

Result<std::unique_ptr<GpuWorker>> StartCard(TestedGpu gpu, const GpuWorkerShape& shape,
                                             const CardOptions& options) {
  const std::string name = gpu.device->info().name;
  auto given = std::make_shared<TestedGpu>(std::move(gpu));
  auto worker =
      CallWithin(options.longest_opening, name, [given, shape, longest = options.longest] {
        return GpuWorker::Create(std::move(*given), shape, longest);
      });
  if (!worker.ok()) WarnOfHungDriver(options, worker.status());
  return worker;
}

}  // namespace troupe
