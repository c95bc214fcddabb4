// The mixes of types that files have as they are uploaded: what a file "in Q4_K_M" has in another
// type than Q4_K, and where. The rules are those by which llama.cpp's quantizer chooses; files in
// one type are tensor_mix.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/tensor_info.h"

namespace troupe {

enum class UploadMix : std::uint8_t {
  kQ4KM,      // Q4_K, and Q6_K where it helps most: the output, half of the values and downs
  kMxfp4Moe,  // experts in MXFP4, everything else in Q8_0
};

std::string_view Name(UploadMix mix);
std::optional<UploadMix> FindUploadMix(std::string_view name);
std::vector<std::string> UploadMixNames();

// What general.file_type says of such a file.
std::uint32_t FileTypeNumber(UploadMix mix);

// One type for each tensor of a whole model, in the file's order. What is not quantizable keeps its
// own; rows that no block of 256 fits get a type of smaller blocks.
std::vector<TensorType> TypesOf(UploadMix mix, std::span<const TensorSpec> tensors);

}  // namespace troupe
