// BuddyMoE's substitution of one layer: by the policy on the processor, by the kernel where the
// choice lies in a card's memory, and by the policy for a card, whose choice goes to the host and
// whose answers go back. On the first card there is, or else on the first device, which the label
// names. A launch is waited for every round.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gpu/device_copies.h"
#include "gpu/listing.h"
#include "runtime/card_buddies_for_test.h"

namespace troupe {
namespace {

// Most tokens ask for something that is not in memory, as with half of the experts there.
constexpr std::uint64_t kMissingIn256 = 100;

struct BuddiesCase {
  LayerForTest layer;
  std::shared_ptr<const BuddyLists> lists;
  Buddies::Options options{.gates = {.tau = 0.2}};

  explicit BuddiesCase(const benchmark::State& state) {
    Rng rng(5);
    const auto of = [&](int i) { return static_cast<std::uint32_t>(state.range(i)); };
    layer = RoutedTokens(rng, of(0), of(1), of(2), kMissingIn256);
    lists = RandomBuddies(rng, of(0), of(1), 2000);
  }
  SubstitutionChain Chain() const {
    std::vector<std::unique_ptr<SubstitutionPolicy>> links;
    links.push_back(std::make_unique<Buddies>(lists, options));
    return SubstitutionChain(std::move(links), {.most_tokens = kNoLimit});
  }
};

Result<std::unique_ptr<GpuDevice>> FirstDevice() {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ListedGpu> found, FindGpus());
  const auto card =
      std::ranges::find(found, false, [](const ListedGpu& gpu) { return gpu.info.is_processor; });
  return OpenGpu((card == found.end() ? found.front() : *card).ways.front());
}

void BM_BuddiesByPolicy(benchmark::State& state) {
  const BuddiesCase made(state);
  SubstitutionChain chain = made.Chain();
  const RoutedLayer view = made.layer.View();
  for (auto _ : state) benchmark::DoNotOptimize(chain.Answer(view).data());
}

void BM_BuddiesByKernel(benchmark::State& state) {
  const BuddiesCase made(state);
  const auto device = FirstDevice();
  if (!device.ok()) return state.SkipWithError(device.status().message().c_str());
  auto buddies = GpuBuddies::Create(**device);
  if (!buddies.ok()) return state.SkipWithError(buddies.status().message().c_str());
  const RoutedForCard routed(made.layer);
  if (!buddies->SetLists(ListsFor(*made.lists)).ok() || !buddies->SetTokens(routed.View()).ok()) {
    return state.SkipWithError("the device takes no layer");
  }
  const GpuBuddyRules rules = RulesFor(made.options);
  for (auto _ : state) {
    const auto ended = buddies->Answer(rules, {});
    if (!ended.ok() || !(*ended)->Wait().ok()) return state.SkipWithError("the device failed");
  }
  state.SetLabel((*device)->info().name);
}

void BM_BuddiesByWayOfTheHost(benchmark::State& state) {
  const BuddiesCase made(state);
  SubstitutionChain chain = made.Chain();
  const auto device = FirstDevice();
  if (!device.ok()) return state.SkipWithError(device.status().message().c_str());
  GpuDevice& card = **device;
  LayerForTest layer = made.layer;
  const RoutedForCard routed(layer);
  const auto chosen = BufferWith(card, std::as_bytes(std::span(routed.chosen))).value();
  const auto weights = BufferWith(card, std::as_bytes(std::span(routed.weights))).value();
  const auto answered = card.Allocate(chosen->size()).value();
  const auto there = card.AllocateHost(chosen->size() + weights->size()).value();
  const std::span<std::byte> of_chosen = there->bytes().first(chosen->size().count());
  const std::span<std::byte> of_weights = there->bytes().subspan(of_chosen.size());
  auto* const experts = reinterpret_cast<std::uint32_t*>(of_chosen.data());
  const auto* const shares = reinterpret_cast<const float*>(of_weights.data());
  const RoutedLayer view = layer.View();
  for (auto _ : state) {
    const auto first = card.CopyOut(GpuLane::kCompute, *chosen, Bytes(0), of_chosen, {});
    const auto second = card.CopyOut(GpuLane::kCompute, *weights, Bytes(0), of_weights, {});
    if (!first.ok() || !second.ok() || !(*second)->Wait().ok()) {
      return state.SkipWithError("the device failed");
    }
    for (std::size_t i = 0; i < layer.chosen.size(); ++i) layer.chosen[i] = {experts[i], shares[i]};
    const std::span<const SlotAnswer> answers = chain.Answer(view);
    for (std::size_t i = 0; i < answers.size(); ++i) experts[i] = answers[i].expert;
    const auto back = card.CopyIn(GpuLane::kCompute, of_chosen, *answered, Bytes(0), {});
    if (!back.ok() || !(*back)->Wait().ok()) return state.SkipWithError("the device failed");
  }
  state.SetLabel(card.info().name);
}

void LayersOfModels(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"experts", "top_k", "tokens"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (const auto& [experts, top_k] : {std::pair{64, 6}, std::pair{128, 8}}) {
    for (const int tokens : {1, 8, 64}) bench->Args({experts, top_k, tokens});
  }
}

BENCHMARK(BM_BuddiesByPolicy)->Apply(LayersOfModels);
BENCHMARK(BM_BuddiesByKernel)->Apply(LayersOfModels);
BENCHMARK(BM_BuddiesByWayOfTheHost)->Apply(LayersOfModels);

}  // namespace
}  // namespace troupe
