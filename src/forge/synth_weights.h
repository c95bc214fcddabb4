// Random weights in stored form. Two ways: every weight drawn on its own and quantized, for models
// small enough; or blocks picked from a pool that was quantized once, which is as fast as the disk
// and, block by block, the same distribution. Either way bytes depend on the seed, the tensor's
// name and the position in it alone: not on threads, machine or what was asked for before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "forge/synth_layout.h"

namespace troupe {

// Mean 0, variance 1, bell-shaped within +-4.9: the sum of eight uniform numbers. Integers and one
// multiplication, so that no machine's mathematical library has a say in a model's bytes.
double DrawBell(Rng& rng);

class WeightSource {
 public:
  enum class Method { kDrawEach, kFromPool };

  WeightSource(std::uint64_t seed, Method method, ThreadPool& threads)
      : seed_(seed), method_(method), threads_(threads) {}

  // All of the tensor's bytes, in order, a few MiB a call.
  using Sink = std::function<Status(std::span<const std::byte>)>;
  Status Generate(const SynthTensor& tensor, const Sink& sink);

 private:
  struct Pool {
    std::vector<std::byte> bytes;
    std::uint32_t units = 0;
    std::size_t unit_bytes = 0;
  };

  Status DrawEach(const SynthTensor& tensor, const Sink& sink);
  Status PickFromPool(const SynthTensor& tensor, const Sink& sink);
  const Pool& PoolFor(TensorType type, double deviation);

  std::uint64_t seed_;
  Method method_;
  ThreadPool& threads_;
  std::map<std::pair<TensorType, double>, Pool> pools_;
};

}  // namespace troupe
