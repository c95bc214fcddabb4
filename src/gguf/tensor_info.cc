#include "gguf/tensor_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace troupe {

TensorSpec::TensorSpec(std::string tensor_name, TensorType tensor_type,
                       std::initializer_list<std::uint64_t> tensor_dims)
    : name(std::move(tensor_name)),
      type(tensor_type),
      rank(static_cast<std::uint32_t>(tensor_dims.size())) {
  TROUPE_CHECK(tensor_dims.size() <= kMaxTensorRank);
  std::copy(tensor_dims.begin(), tensor_dims.end(), dims.begin());
}

Result<Bytes> SizeOfTensor(const TensorSpec& spec) {
  if (spec.rank > kMaxTensorRank) {
    return InvalidArgument("{} dimensions, at most {} allowed", spec.rank, kMaxTensorRank);
  }
  std::uint64_t elements = 1;
  for (std::uint32_t d = 0; d < kMaxTensorRank; ++d) {
    const std::uint64_t dim = spec.dims[d];
    if (dim == 0) return InvalidArgument("dimension {} is 0, at least 1 expected", d);
    if (d >= spec.rank && dim != 1) {
      return InvalidArgument("dimension {} is {}, but it has only {}", d, dim, spec.rank);
    }
    if (__builtin_mul_overflow(elements, dim, &elements)) {
      return InvalidArgument("shape {} has more than 2^64 elements", DescribeShape(spec));
    }
  }
  const TensorTypeInfo& type = Info(spec.type);
  if (spec.dims[0] % type.block_elems != 0) {
    return InvalidArgument("rows of {} elements, a multiple of {} expected for {}", spec.dims[0],
                           type.block_elems, type.name);
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / type.block_elems, std::uint64_t{type.block_bytes},
                             &bytes)) {
    return InvalidArgument("shape {} has more than 2^64 bytes", DescribeShape(spec));
  }
  return Bytes(bytes);
}

std::string DescribeShape(const TensorSpec& spec) {
  const std::span dims(spec.dims.data(), std::min(spec.rank, kMaxTensorRank));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace troupe
