#include "forge/upload_mix.h"

#include <algorithm>
#include <array>
#include <utility>

#include "forge/tensor_mix.h"

namespace troupe {
namespace {

constexpr std::array<std::pair<UploadMix, std::string_view>, 2> kNames = {
    {{UploadMix::kQ4KM, "Q4_K_M"}, {UploadMix::kMxfp4Moe, "MXFP4_MOE"}}};

bool Has(const TensorSpec& tensor, std::string_view part) {
  return tensor.name.find(part) != std::string::npos;
}

bool IsFusedAttention(const TensorSpec& tensor) { return Has(tensor, "attn_qkv.weight"); }

bool IsValues(const TensorSpec& tensor) {
  return Has(tensor, "attn_v.weight") || Has(tensor, "attn_kv_b.weight");
}

bool IsDown(const TensorSpec& tensor) { return Has(tensor, "ffn_down"); }

// The first and the last eighth of the layers, and every third between.
bool UsesMoreBits(std::size_t i, std::size_t count) {
  const std::size_t eighth = count / 8;
  return i < eighth || i >= 7 * count / 8 || (i - eighth) % 3 == 2;
}

std::size_t LayerOf(const TensorSpec& tensor) {
  std::size_t layer = 0;
  for (const char c : std::string_view(tensor.name).substr(std::string_view("blk.").size())) {
    if (c < '0' || c > '9') break;
    layer = 10 * layer + static_cast<std::size_t>(c - '0');
  }
  return layer;
}

std::size_t LayersOf(std::span<const TensorSpec> tensors) {
  std::size_t layers = 0;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.starts_with("blk.")) layers = std::max(layers, LayerOf(tensor) + 1);
  }
  return layers;
}

// Asked for the quantizable tensors of a model in their order.
class Q4KMRule {
 public:
  explicit Q4KMRule(std::span<const TensorSpec> tensors)
      : layers_(LayersOf(tensors)),
        values_(static_cast<std::size_t>(std::ranges::count_if(
            tensors, [](const TensorSpec& t) { return IsValues(t) || IsFusedAttention(t); }))),
        has_output_(std::ranges::any_of(
            tensors, [](const TensorSpec& t) { return t.name == "output.weight"; })) {}

  TensorType Wanted(const TensorSpec& tensor) {
    if (tensor.name == (has_output_ ? "output.weight" : "token_embd.weight")) {
      return TensorType::kQ6_K;
    }
    if (IsFusedAttention(tensor)) return TensorType::kQ5_K;
    if (IsValues(tensor) && UsesMoreBits(next_values_++, values_)) return TensorType::kQ6_K;
    if (IsDown(tensor) && UsesMoreBits(LayerOf(tensor), layers_)) return TensorType::kQ6_K;
    return TensorType::kQ4_K;
  }

 private:
  std::size_t layers_, values_, next_values_ = 0;
  bool has_output_;
};

}  // namespace

std::string_view Name(UploadMix mix) {
  return std::ranges::find(kNames, mix, &std::pair<UploadMix, std::string_view>::first)->second;
}

std::optional<UploadMix> FindUploadMix(std::string_view name) {
  const auto found =
      std::ranges::find(kNames, name, &std::pair<UploadMix, std::string_view>::second);
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

std::vector<std::string> UploadMixNames() {
  std::vector<std::string> names;
  for (const auto& [mix, name] : kNames) names.emplace_back(name);
  return names;
}

std::uint32_t FileTypeNumber(UploadMix mix) { return mix == UploadMix::kQ4KM ? 15 : 38; }

std::vector<TensorType> TypesOf(UploadMix mix, std::span<const TensorSpec> tensors) {
  Q4KMRule rule(tensors);
  std::vector<TensorType> types;
  for (const TensorSpec& tensor : tensors) {
    TensorType type = tensor.type;
    if (IsQuantizable(tensor)) {
      if (mix == UploadMix::kQ4KM) {
        type = rule.Wanted(tensor);
      } else {
        type = IsExpertMatrix(tensor) ? TensorType::kMXFP4 : TensorType::kQ8_0;
      }
      type = FittingType(type, tensor.dims[0]);
    }
    types.push_back(type);
  }
  return types;
}

}  // namespace troupe
