// The element types of tensors as GGUF numbers them, and the size of their blocks. What the blocks
// mean is in quant/; files, block formats and kernels share this vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace troupe {

enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kIQ1_M = 29,
  kBF16 = 30,
  kMXFP4 = 39,
  kNVFP4 = 40,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;      // as people and file names write it: "Q4_K"
  std::uint32_t block_elems;  // elements that share one block
  std::uint32_t block_bytes;
};

// Every type that the engine reads, in the order of their numbers.
std::span<const TensorTypeInfo> AllTensorTypes();

// Null for numbers the engine does not know (a type of a later GGUF, or a broken file).
const TensorTypeInfo* FindTensorType(std::uint32_t number);
// What ggml calls a type that the engine does not read; empty for the others, and where ggml has no
// type of that number either.
std::string_view UnreadTypeName(std::uint32_t number);
// Ignores case: "q4_k" finds Q4_K.
std::optional<TensorType> TensorTypeByName(std::string_view name);

const TensorTypeInfo& Info(TensorType type);
inline std::string_view Name(TensorType type) { return Info(type).name; }

// Bytes of one row of `columns` elements; columns must be a multiple of the block.
Bytes RowBytes(TensorType type, std::uint64_t columns);

}  // namespace troupe
