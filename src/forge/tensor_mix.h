// Which type each tensor is stored in when a model is written "in" one type: large matrices get it,
// or the nearest one that their rows fit, and what is small or delicate stays float. `synth` and
// `quantize` share this rule, which is llama.cpp's for its unmixed files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/tensor_type.h"
#include "gguf/tensor_info.h"

namespace troupe {

// `wanted` if rows of `columns` elements fit its blocks. Otherwise, from 256-blocks to 32-blocks of
// no less precision: Q2_K and Q3_K to Q4_0, Q4_K to Q5_0, Q5_K to Q5_1, Q6_K to Q8_0, IQ1_* to
// IQ3_* and IQ4_XS to IQ4_NL; and F16 for rows that no multiple of 32 fits.
TensorType FittingType(TensorType wanted, std::uint64_t columns);

// Matrices of weights but for routers, whose small errors would change which experts are chosen,
// and short convolutions, which are few numbers. Norms, biases and everything else of one dimension
// stay as they are.
bool IsQuantizable(const TensorSpec& tensor);

// The routed experts of a layer in one tensor.
bool IsExpertMatrix(const TensorSpec& tensor);

struct TensorMix {
  TensorType type = TensorType::kF16;
  std::optional<TensorType> embedding = std::nullopt;  // token_embd.weight; `type` if not given
  std::optional<TensorType> output = std::nullopt;     // output.weight; `type` if not given

  // For a quantizable tensor: what was asked for, and the nearest to it that its rows fit.
  TensorType WantedFor(const TensorSpec& tensor) const;
  TensorType TypeFor(const TensorSpec& tensor) const;
};

// What general.file_type says of a model that is mostly of this type.
std::uint32_t FileTypeNumber(TensorType type);

}  // namespace troupe
