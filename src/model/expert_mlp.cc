#include "model/expert_mlp.h"

#include "base/check.h"
#include "kernels/quantize_activations.h"
#include "model/for_rows.h"

namespace troupe {
namespace {

std::size_t FloatBytes(std::size_t ff, std::size_t rows) {
  return AlignUp(rows * ff * sizeof(float), kCacheLine.count());
}

}  // namespace

void QuantizeRows(const Activations& x, ThreadPool& pool) {
  if (x.groups == nullptr) return;
  ForRows(pool, x.tokens, [&](std::size_t row) { QuantizeActivations(x, row, 1); });
}

Result<ExpertMlp> ExpertMlp::Create(std::size_t ff, std::size_t rows) {
  const std::size_t codes = ff % kGroupCols == 0 ? ActivationBytes(rows, ff) : 0;
  TROUPE_ASSIGN_OR_RETURN(AlignedBuffer hidden,
                          AlignedBuffer::Allocate(Bytes(FloatBytes(ff, rows) + codes)));
  return ExpertMlp(ff, rows, std::move(hidden));
}

void ExpertMlp::Run(const Mlp& expert, const Activations& x, std::span<const std::uint32_t> rows,
                    std::span<float> out, ThreadPool& pool) {
  TROUPE_CHECK(!rows.empty() && rows.size() <= most_rows_ && expert.down.cols == ff_);
  TROUPE_CHECK(out.size() == rows.size() * expert.down.rows);
  auto* const values = reinterpret_cast<float*>(hidden_.data());
  const std::span<std::byte> codes = hidden_.bytes().subspan(FloatBytes(ff_, most_rows_));
  const Activations hidden = MakeActivations(values, ff_, rows.size(), ff_, codes);
  AddFirstHalf(region_, expert, x, rows, values, ff_);
  region_.Run(pool);
  QuantizeRows(hidden, pool);
  AddSecondHalf(region_, expert, hidden, out.data());
  region_.Run(pool);
}

}  // namespace troupe
