// How one expert of a layer lies in a slot of memory: the panels of its gate, up and down matrices
// one after the other. All experts of a layer lie alike. Also where a GGUF keeps the three. Where
// one product is the whole first half, its matrix is the gate, and up has no rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/tensor_type.h"
#include "gguf/tensor_info.h"
#include "model/weights.h"

namespace troupe {

struct ExpertMatrix {
  const TensorInfo* tensor = nullptr;  // that holds this matrix of all the layer's experts
  TensorType type = TensorType::kF32;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::uint64_t slot_offset = 0;
  // Of the tensor: rows of an expert, and those before this matrix's. A gate and an up matrix may
  // be in one tensor.
  std::size_t tensor_rows = 0;
  std::size_t rows_before = 0;

  std::uint64_t FirstRow(std::uint64_t expert) const { return expert * tensor_rows + rows_before; }
  // Of one expert, in the file and in the slot.
  std::uint64_t SourceBytes() const { return rows * RowBytes(type, cols).count(); }
  std::uint64_t SlotBytes() const { return PanelBytes(type, rows, cols); }
};

struct ExpertLayout {
  std::array<ExpertMatrix, 3> matrices;  // gate, up, down

  bool empty() const { return matrices[0].tensor == nullptr; }  // a layer without experts

  // The gate's and up's tensor may be the same one: each has half of its rows.
  static ExpertLayout For(const TensorInfo& gate, const TensorInfo& up, const TensorInfo& down);
  static ExpertLayout WithoutUp(const TensorInfo& gate, const TensorInfo& down);
  // The same matrices in other types, which their rows must fit; `tensor` stays what it is.
  ExpertLayout In(const std::array<TensorType, 3>& types) const;

  bool TakesUp() const { return matrices[1].rows > 0; }
  std::uint64_t SlotBytes() const;    // to the end of the last matrix
  std::uint64_t SourceBytes() const;  // of the three in the file
  // The expert whose panels begin at `slot`. Its form is one that takes these matrices.
  Mlp At(const std::byte* slot) const;
  // What a slot with that expert holds from `offset` on, wherever its panels lie.
  void CopySlot(const Mlp& expert, std::uint64_t offset, std::span<std::byte> out) const;
  // Packs the rows of the three matrices, as the file has them, into a slot.
  void Pack(std::span<const std::span<const std::byte>> rows, std::span<std::byte> slot) const;
};

// One a layer; empty for layers without experts. `tensor` pointers are into `file`.
using ExpertLayouts = std::vector<ExpertLayout>;

}  // namespace troupe
