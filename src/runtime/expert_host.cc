#include "runtime/expert_host.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

bool MultipliesCodes(TensorType type) { return Info(type).block_elems > 1; }

}  // namespace

bool ReadsCodesAlone(TensorType gate, TensorType up) {
  return MultipliesCodes(gate) && MultipliesCodes(up);
}

Result<std::unique_ptr<ExpertHost>> ExpertHost::Create(HeldExperts& held, std::size_t ff,
                                                       std::uint32_t threads, int lower_priority) {
  TROUPE_ASSIGN_OR_RETURN(ExpertMlp mlp, ExpertMlp::Create(ff, kRowsTogether));
  return std::unique_ptr<ExpertHost>(new ExpertHost(held, std::move(mlp), threads, lower_priority));
}

Status ExpertHost::Compute(ExpertId id, const Activations& input,
                           std::span<const std::uint32_t> rows, std::span<float> out) {
  const auto use = held_.Find(id);
  if (!use) return Error(Code::kNotFound, "{} is not held here", ToString(id));
  const Mlp& expert = use->weights();
  const std::size_t width = expert.down.rows;
  TROUPE_CHECK(out.size() == rows.size() * width);
  while (!rows.empty()) {
    const std::size_t together = std::min(rows.size(), kRowsTogether);
    mlp_.Run(expert, input, rows.first(together), out.first(together * width), pool_);
    rows = rows.subspan(together);
    out = out.subspan(together * width);
  }
  return OkStatus();
}

}  // namespace troupe
