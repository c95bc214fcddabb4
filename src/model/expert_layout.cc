#include "model/expert_layout.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

// Panels start on cache lines; the reads of AVX-512 then never straddle two.
constexpr std::uint64_t kMatrixAlignment = 64;

void PlaceInSlot(std::array<ExpertMatrix, 3>& matrices) {
  std::uint64_t next = 0;
  for (ExpertMatrix& matrix : matrices) {
    matrix.slot_offset = AlignUp(next, kMatrixAlignment);
    next = matrix.slot_offset + matrix.SlotBytes();
  }
}

}  // namespace

ExpertLayout ExpertLayout::For(const TensorInfo& gate, const TensorInfo& up,
                               const TensorInfo& down) {
  ExpertLayout layout;
  const std::array<const TensorInfo*, 3> tensors = {&gate, &up, &down};
  for (std::size_t m = 0; m < tensors.size(); ++m) {
    const bool halved = m < 2 && &gate == &up;
    const std::size_t rows = tensors[m]->dims[1];
    layout.matrices[m] = {.tensor = tensors[m],
                          .type = tensors[m]->type,
                          .rows = halved ? rows / 2 : rows,
                          .cols = tensors[m]->dims[0],
                          .tensor_rows = rows,
                          .rows_before = halved && m == 1 ? rows / 2 : 0};
  }
  PlaceInSlot(layout.matrices);
  return layout;
}

ExpertLayout ExpertLayout::WithoutUp(const TensorInfo& gate, const TensorInfo& down) {
  ExpertLayout layout = For(gate, gate, down);
  ExpertMatrix& only = layout.matrices[0];
  ExpertMatrix& up = layout.matrices[1];
  only.rows = up.rows_before = only.tensor_rows;
  up.rows = 0;
  PlaceInSlot(layout.matrices);
  return layout;
}

ExpertLayout ExpertLayout::In(const std::array<TensorType, 3>& types) const {
  ExpertLayout layout = *this;
  for (std::size_t m = 0; m < types.size(); ++m) layout.matrices[m].type = types[m];
  PlaceInSlot(layout.matrices);
  return layout;
}

std::uint64_t ExpertLayout::SlotBytes() const {
  return matrices.back().slot_offset + matrices.back().SlotBytes();
}

std::uint64_t ExpertLayout::SourceBytes() const {
  std::uint64_t sum = 0;
  for (const ExpertMatrix& matrix : matrices) sum += matrix.SourceBytes();
  return sum;
}

Mlp ExpertLayout::At(const std::byte* slot) const {
  const auto at = [slot](const ExpertMatrix& matrix) {
    return PanelMatrix{.type = matrix.type,
                       .rows = matrix.rows,
                       .cols = matrix.cols,
                       .data = slot + matrix.slot_offset};
  };
  return {.gate = at(matrices[0]),
          .up = at(matrices[1]),
          .down = at(matrices[2]),
          .form = TakesUp() ? GateForm::kSilu : GateForm::kSquaredRelu};
}

void ExpertLayout::CopySlot(const Mlp& expert, std::uint64_t offset,
                            std::span<std::byte> out) const {
  TROUPE_CHECK(offset + out.size() <= SlotBytes());
  std::ranges::fill(out, std::byte{0});  // the gaps
  const std::array<const PanelMatrix*, 3> panels = {&expert.gate, &expert.up, &expert.down};
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const std::uint64_t begin = std::max(matrices[m].slot_offset, offset);
    const std::uint64_t end =
        std::min(matrices[m].slot_offset + matrices[m].SlotBytes(), offset + out.size());
    if (begin >= end) continue;
    std::memcpy(out.data() + (begin - offset), panels[m]->data + (begin - matrices[m].slot_offset),
                end - begin);
  }
}

void ExpertLayout::Pack(std::span<const std::span<const std::byte>> rows,
                        std::span<std::byte> slot) const {
  TROUPE_CHECK(rows.size() == matrices.size() && slot.size() >= SlotBytes());
  std::uint64_t end = 0;  // of the matrix before
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const ExpertMatrix& matrix = matrices[m];
    // Nobody reads the gaps, but equal experts shall be equal bytes.
    std::ranges::fill(slot.subspan(end, matrix.slot_offset - end), std::byte{0});
    PackPanels(matrix.type, matrix.rows, matrix.cols, rows[m],
               slot.subspan(matrix.slot_offset, matrix.SlotBytes()));
    end = matrix.slot_offset + matrix.SlotBytes();
  }
}

}  // namespace troupe
