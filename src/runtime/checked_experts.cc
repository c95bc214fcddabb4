#include "runtime/checked_experts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {

std::uint32_t CheckedExperts::ExpertsOf(const ExpertLayouts& layouts) {
  std::uint64_t most = 0;
  for (const ExpertLayout& layout : layouts) {
    if (!layout.empty()) most = std::max(most, layout.matrices[0].tensor->MatrixCount());
  }
  return static_cast<std::uint32_t>(most);
}

Bytes CheckedExperts::BytesFor(const ExpertLayouts& layouts) {
  constexpr std::size_t kOfMatrix = sizeof(Matrix) + 96;  // a long name, a list of parts
  return Bytes(layouts.size() * (ExpertsOf(layouts) * sizeof(bool) + 3 * kOfMatrix));
}

// A gate and an up matrix may be in one tensor, then the gate first.
std::vector<CheckedExperts::Matrix> CheckedExperts::MatricesOf(const ExpertLayout& layout) {
  std::vector<Matrix> matrices;
  if (layout.empty()) return matrices;
  for (std::uint8_t part = 0; part < layout.matrices.size(); ++part) {
    const ExpertMatrix& matrix = layout.matrices[part];
    const auto same = std::ranges::find(matrices, matrix.tensor->name,
                                        [](const Matrix& known) { return known.tensor.name; });
    Matrix& of = same != matrices.end() ? *same : matrices.emplace_back(Matrix{*matrix.tensor, {}});
    TROUPE_CHECK(of.parts.empty() ||
                 layout.matrices[of.parts.back()].rows_before < matrix.rows_before);
    of.parts.push_back(part);
  }
  for (const Matrix& matrix : matrices) {
    std::uint64_t bytes = 0;
    for (const std::uint8_t part : matrix.parts) bytes += layout.matrices[part].SourceBytes();
    TROUPE_CHECK(bytes * matrix.tensor.MatrixCount() == matrix.tensor.bytes.count());
  }
  return matrices;
}

CheckedExperts::CheckedExperts(std::shared_ptr<const WeightChecks> sums,
                               const ExpertLayouts& layouts)
    : sums_(std::move(sums)),
      experts_(ExpertsOf(layouts)),
      verified_(sums_ == nullptr ? 0 : layouts.size() * experts_) {
  if (sums_ == nullptr) return;
  for (const ExpertLayout& layout : layouts) layers_.push_back(MatricesOf(layout));
}

Status CheckedExperts::Check(ExpertId id, std::span<const std::span<const std::byte>> parts) {
  if (sums_ == nullptr) return OkStatus();
  TROUPE_CHECK(id.layer < layers_.size() && id.expert < experts_);
  const std::size_t number = id.layer * experts_ + id.expert;
  if (verified_.Has(number)) return OkStatus();
  for (const Matrix& matrix : layers_[id.layer]) {
    const std::unique_ptr<MatrixCheck> check = sums_->Begin(matrix.tensor, id.expert);
    if (check == nullptr) continue;
    for (const std::uint8_t part : matrix.parts) check->Add(parts[part]);
    TROUPE_RETURN_IF_ERROR(check->Finish());
  }
  verified_.Note(number);
  return OkStatus();
}

}  // namespace troupe
