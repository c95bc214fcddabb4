// What a GGUF file says about one tensor: its name, type and shape, and where its bytes lie.
// Dimensions are in ggml's order: dims[0] is the one whose elements lie side by side (the columns
// of a row), so a matrix that maps 128 inputs to 64 outputs is {128, 64}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_type.h"

namespace troupe {

inline constexpr std::uint32_t kMaxTensorRank = 4;
inline constexpr std::size_t kMaxTensorNameBytes = 64;  // the format's limit

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::uint32_t rank = 0;
  std::array<std::uint64_t, kMaxTensorRank> dims = {1, 1, 1, 1};  // 1 from `rank` on

  TensorSpec() = default;
  TensorSpec(std::string tensor_name, TensorType tensor_type,
             std::initializer_list<std::uint64_t> tensor_dims);

  // For a tensor whose shape was checked, as that of every one read or written is.
  std::uint64_t ElementCount() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // One, or as many as a stack has experts.
  std::uint64_t MatrixCount() const { return dims[2] * dims[3]; }

  bool operator==(const TensorSpec&) const = default;
};

struct TensorInfo : TensorSpec {
  Bytes bytes;
  std::uint32_t file = 0;    // index of the file of a split model
  std::uint64_t offset = 0;  // from the beginning of that file

  bool operator==(const TensorInfo&) const = default;
};

// Checks a shape against its type and computes its size; the error says what is wrong, not where.
Result<Bytes> SizeOfTensor(const TensorSpec& spec);

// "[128, 64, 32]"
std::string DescribeShape(const TensorSpec& spec);

}  // namespace troupe
