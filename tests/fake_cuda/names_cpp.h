// The words of the kernels' source in C++, as src/gpu/names_opencl.cl has them for OpenCL and
// names_cuda.cuh for CUDA: so that the very same text computes on the processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "fake_cuda/items.h"
#include "fake_cuda/programs.h"

namespace troupe {

using uchar = std::uint8_t;
using ushort = std::uint16_t;
using uint = std::uint32_t;
using ulong = std::uint64_t;

// What was there; it is `to` now if that was `from`.
inline uint FakeSwap(uint* word, uint from, uint to) {
  const uint found = *word;
  if (found == from) *word = to;
  return found;
}

#define KERNEL static
#define ITEMS_ARE(count)
#define DEVICE [[maybe_unused]] static
#define GLOBAL
#define LOCAL static thread_local
#define CONSTANT static const
#define GROUP(dimension) (fake_item.group[dimension])
#define ITEM (fake_item.number)
#define WAIT_FOR_GROUP() FakeGroup::Wait()
#define FLOAT_OF(bits) std::bit_cast<float>(bits)
#define BITS_OF(number) std::bit_cast<uint>(number)
#define FMA(a, b, c) std::fma(a, b, c)
#define NEAREST(x) std::nearbyint(x)
#define COUNT_OF_BITS(word) static_cast<uint>(std::popcount(word))
#define COUNT(counter) ((void)++*(counter))
#define LOCAL_OR(word, bits) ((void)(*(word) |= (bits)))
#define LOCAL_SWAP(word, from, to) FakeSwap(word, from, to)
#define DOUBLE_OF(bits) std::bit_cast<double>(bits)
#define BITS_OF_DOUBLE(number) std::bit_cast<ulong>(number)

}  // namespace troupe
