#include "base/tensor_type.h"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr TensorTypeInfo kTypes[] = {
    {TensorType::kF32, "F32", 1, 4},
    {TensorType::kF16, "F16", 1, 2},
    {TensorType::kQ4_0, "Q4_0", 32, 18},
    {TensorType::kQ4_1, "Q4_1", 32, 20},
    {TensorType::kQ5_0, "Q5_0", 32, 22},
    {TensorType::kQ5_1, "Q5_1", 32, 24},
    {TensorType::kQ8_0, "Q8_0", 32, 34},
    {TensorType::kQ2_K, "Q2_K", 256, 84},
    {TensorType::kQ3_K, "Q3_K", 256, 110},
    {TensorType::kQ4_K, "Q4_K", 256, 144},
    {TensorType::kQ5_K, "Q5_K", 256, 176},
    {TensorType::kQ6_K, "Q6_K", 256, 210},
    {TensorType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {TensorType::kIQ2_XS, "IQ2_XS", 256, 74},
    {TensorType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {TensorType::kIQ1_S, "IQ1_S", 256, 50},
    {TensorType::kIQ4_NL, "IQ4_NL", 32, 18},
    {TensorType::kIQ3_S, "IQ3_S", 256, 110},
    {TensorType::kIQ2_S, "IQ2_S", 256, 82},
    {TensorType::kIQ4_XS, "IQ4_XS", 256, 136},
    {TensorType::kIQ1_M, "IQ1_M", 256, 56},
    {TensorType::kBF16, "BF16", 1, 2},
    {TensorType::kMXFP4, "MXFP4", 32, 17},
    {TensorType::kNVFP4, "NVFP4", 64, 36},
};

// What files have beside those, or had once. Number 4 was gone before the first GGUF: those that
// have it are ollama's first ones of gpt-oss.
struct UnreadType {
  std::uint32_t number;
  std::string_view name;
};

constexpr UnreadType kUnread[] = {
    {4, "MXFP4 under a number of ollama's own"},
    {5, "Q4_3"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32"},
    {27, "I64"},
    {28, "F64"},
    {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4"},
    {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"},
    {41, "Q1_0"},
    {42, "Q2_0"},
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

std::string_view UnreadTypeName(std::uint32_t number) {
  for (const UnreadType& unread : kUnread) {
    if (unread.number == number) return unread.name;
  }
  return {};
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
