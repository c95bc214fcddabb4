#include "base/tensor_type.h"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr TensorTypeInfo kTypes[] = {
    {TensorType::kF32, "F32", 1, 4},         {TensorType::kF16, "F16", 1, 2},
    {TensorType::kQ4_0, "Q4_0", 32, 18},     {TensorType::kQ4_1, "Q4_1", 32, 20},
    {TensorType::kQ5_0, "Q5_0", 32, 22},     {TensorType::kQ5_1, "Q5_1", 32, 24},
    {TensorType::kQ8_0, "Q8_0", 32, 34},     {TensorType::kQ2_K, "Q2_K", 256, 84},
    {TensorType::kQ3_K, "Q3_K", 256, 110},   {TensorType::kQ4_K, "Q4_K", 256, 144},
    {TensorType::kQ5_K, "Q5_K", 256, 176},   {TensorType::kQ6_K, "Q6_K", 256, 210},
    {TensorType::kIQ4_NL, "IQ4_NL", 32, 18}, {TensorType::kIQ4_XS, "IQ4_XS", 256, 136},
    {TensorType::kBF16, "BF16", 1, 2},       {TensorType::kMXFP4, "MXFP4", 32, 17},
};

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

std::span<const TensorTypeInfo> AllTensorTypes() { return kTypes; }

const TensorTypeInfo* FindTensorType(std::uint32_t number) {
  for (const TensorTypeInfo& info : kTypes) {
    if (static_cast<std::uint32_t>(info.type) == number) return &info;
  }
  return nullptr;
}

std::optional<TensorType> TensorTypeByName(std::string_view name) {
  for (const TensorTypeInfo& info : kTypes) {
    if (EqualIgnoringCase(info.name, name)) return info.type;
  }
  return std::nullopt;
}

const TensorTypeInfo& Info(TensorType type) {
  const TensorTypeInfo* info = FindTensorType(static_cast<std::uint32_t>(type));
  TROUPE_CHECK(info != nullptr);
  return *info;
}

Bytes RowBytes(TensorType type, std::uint64_t columns) {
  const TensorTypeInfo& info = Info(type);
  TROUPE_CHECK(columns % info.block_elems == 0);
  return Bytes(columns / info.block_elems * info.block_bytes);
}

}  // namespace troupe
