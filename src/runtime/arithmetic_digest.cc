#include "runtime/arithmetic_digest.h"

#include <xxhash.h>

#include <set>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "kernels/quantize_activations.h"
#include "runtime/expert_host.h"

namespace troupe {
namespace {

constexpr std::size_t kDigestRows = 5;
constexpr std::uint64_t kDigestSeed = 20'240'229;

std::vector<float> FixedRows(std::size_t width) {
  Rng rng(kDigestSeed);
  std::vector<float> rows(kDigestRows * width);
  for (float& value : rows) value = static_cast<float>(rng.Normal());
  return rows;
}

}  // namespace

Result<std::uint64_t> ArithmeticDigest(Engine& engine) {
  const std::size_t width = engine.config().width;
  const std::vector<float> values = FixedRows(width);
  const std::size_t codes = width % kGroupCols == 0 ? ActivationBytes(kDigestRows, width) : 0;
  std::vector<std::byte> groups(codes);
  const Activations rows = MakeActivations(values.data(), width, kDigestRows, width, groups);
  if (rows.groups != nullptr) QuantizeActivations(rows, 0, kDigestRows);
  const std::uint32_t which[kDigestRows] = {0, 1, 2, 3, 4};
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ExpertHost> host,
                          ExpertHost::Create(engine.held(), engine.config().moe.expert_ff, 1));
  std::set<std::tuple<TensorType, TensorType, TensorType>> seen;
  std::uint64_t digest = kDigestSeed;
  std::vector<float> out(values.size());
  const ExpertLayouts& layouts = engine.expert_layouts();
  for (std::uint32_t layer = 0; layer < layouts.size(); ++layer) {
    if (layouts[layer].empty()) continue;
    const auto& [gate, up, down] = layouts[layer].matrices;
    if (!seen.emplace(gate.type, up.type, down.type).second) continue;
    const ExpertId id{layer, 0};
    const bool was_held = engine.held().Holds(id);
    if (!was_held) TROUPE_RETURN_IF_ERROR(engine.HoldExperts(layer, {&id.expert, 1}));
    TROUPE_RETURN_IF_ERROR(host->Compute(id, rows, which, out));
    if (!was_held) engine.ReleaseExpert(id);
    digest = XXH3_64bits_withSeed(out.data(), out.size() * sizeof(float), digest);
  }
  return digest;
}

}  // namespace troupe
