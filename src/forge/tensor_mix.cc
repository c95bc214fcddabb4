#include "forge/tensor_mix.h"

#include "base/check.h"

namespace troupe {
namespace {

TensorType SmallerBlocks(TensorType type) {
  switch (type) {
    case TensorType::kQ2_K:
    case TensorType::kQ3_K:
      return TensorType::kQ4_0;
    case TensorType::kQ4_K:
      return TensorType::kQ5_0;
    case TensorType::kQ5_K:
      return TensorType::kQ5_1;
    case TensorType::kQ6_K:
      return TensorType::kQ8_0;
    case TensorType::kIQ1_S:
    case TensorType::kIQ1_M:
    case TensorType::kIQ2_XXS:
    case TensorType::kIQ2_XS:
    case TensorType::kIQ2_S:
    case TensorType::kIQ3_XXS:
    case TensorType::kIQ3_S:
    case TensorType::kIQ4_XS:
      return TensorType::kIQ4_NL;
    case TensorType::kNVFP4:
      return TensorType::kMXFP4;
    default:
      return TensorType::kF16;
  }
}

}  // namespace

TensorType FittingType(TensorType wanted, std::uint64_t columns) {
  while (columns % Info(wanted).block_elems != 0) wanted = SmallerBlocks(wanted);
  return wanted;
}

bool IsQuantizable(const TensorSpec& tensor) {
  const std::string_view name = tensor.name;
  return tensor.rank >= 2 && name.ends_with(".weight") && !name.ends_with("_norm.weight") &&
         !name.ends_with("ffn_gate_inp.weight") && !name.ends_with("ssm_conv1d.weight") &&
         !name.ends_with("shortconv.conv.weight") && !name.ends_with("attn_rel_b.weight");
}

bool IsExpertMatrix(const TensorSpec& tensor) {
  return std::string_view(tensor.name).ends_with("_exps.weight");
}

TensorType TensorMix::WantedFor(const TensorSpec& tensor) const {
  if (tensor.name == "token_embd.weight") return embedding.value_or(type);
  if (tensor.name == "output.weight") return output.value_or(type);
  return type;
}

TensorType TensorMix::TypeFor(const TensorSpec& tensor) const {
  return FittingType(WantedFor(tensor), tensor.dims[0]);
}

std::uint32_t FileTypeNumber(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return 0;
    case TensorType::kF16:
      return 1;
    case TensorType::kQ4_0:
      return 2;
    case TensorType::kQ4_1:
      return 3;
    case TensorType::kQ8_0:
      return 7;
    case TensorType::kQ5_0:
      return 8;
    case TensorType::kQ5_1:
      return 9;
    case TensorType::kQ2_K:
      return 10;
    case TensorType::kQ3_K:
      return 11;
    case TensorType::kQ4_K:
      return 14;
    case TensorType::kQ5_K:
      return 16;
    case TensorType::kQ6_K:
      return 18;
    case TensorType::kIQ2_XXS:
      return 19;
    case TensorType::kIQ2_XS:
      return 20;
    case TensorType::kIQ3_XXS:
      return 23;
    case TensorType::kIQ1_S:
      return 24;
    case TensorType::kIQ4_NL:
      return 25;
    case TensorType::kIQ3_S:
      return 26;
    case TensorType::kIQ2_S:
      return 28;
    case TensorType::kIQ1_M:
      return 31;
    case TensorType::kIQ4_XS:
      return 30;
    case TensorType::kBF16:
      return 32;
    case TensorType::kMXFP4:
      return 38;
    case TensorType::kNVFP4:
      return 39;
  }
  TROUPE_CHECK(false);
}

}  // namespace troupe
