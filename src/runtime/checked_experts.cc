#include "runtime/checked_experts.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/status.h"

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

class CheckedExperts::Check final : public ArrivalCheck {
 public:
  Check(CheckedExperts& experts, ExpertId id) : experts_(experts), id_(id) {
    for (const Matrix& matrix : experts.layers_[id.layer]) {
      checks_.push_back(experts.sums_->Begin(matrix.tensor, id.expert));
      for (const std::uint8_t part : matrix.parts) of_part_[part] = checks_.back().get();
    }
  }

  void Add(std::size_t part, std::span<const std::byte> bytes) override {
    if (of_part_[part] != nullptr) of_part_[part]->Add(bytes);
  }

  Status Finish() override {
    for (const std::unique_ptr<MatrixCheck>& check : checks_) {
      if (check != nullptr) TROUPE_RETURN_IF_ERROR(check->Finish());
    }
    experts_.verified_.Note(experts_.NumberOf(id_));
    return OkStatus();
  }

 private:
  CheckedExperts& experts_;
  ExpertId id_;
  std::vector<std::unique_ptr<MatrixCheck>> checks_;
  std::array<MatrixCheck*, 3> of_part_ = {};  // null: nothing was recorded
};

std::size_t CheckedExperts::NumberOf(ExpertId id) const {
  TROUPE_CHECK(id.layer < layers_.size() && id.expert < experts_);
  return id.layer * experts_ + id.expert;
}

std::unique_ptr<ArrivalCheck> CheckedExperts::Begin(ExpertId id) {
  if (sums_ == nullptr || verified_.Has(NumberOf(id))) return nullptr;
  return std::make_unique<Check>(*this, id);
}

}  // namespace troupe
