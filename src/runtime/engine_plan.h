// Options in, plan out, by a pure function: how many threads, how long a context, which form of KV
// cache, and what all of it takes in memory. The engine obeys the plan; --explain prints it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "kernels/kv_layout.h"
#include "model/config.h"

namespace troupe {

struct EngineOptions {
  std::optional<std::uint32_t> threads;  // absent: as many as the process may run
  std::optional<std::uint32_t> context;  // absent: the trained context, at most kDefaultContext
  KvType kv_type = KvType::kF16;
  std::optional<Bytes> memory;  // absent: no limit
  std::uint32_t chunk = 512;    // tokens of a prompt that go through the layers together

  static constexpr std::uint32_t kDefaultContext = 4096;
};

struct EnginePlan {
  std::uint32_t threads = 1;
  std::uint32_t context = 0;
  KvType kv_type = KvType::kF16;
  std::uint32_t chunk = 0;
  Bytes budget;                        // 0: none was set
  Bytes weights, kv_cache, workspace;  // at most: the cache fills as the context does
  std::vector<std::string> notes;      // "context 4096 of the trained 32768: --ctx asks for more"

  Bytes total() const { return weights + kv_cache + workspace; }
  bool operator==(const EnginePlan&) const = default;
};

// `weights` is what they take in memory, `cpus` what the process may run on.
Result<EnginePlan> PlanEngine(const ModelConfig& config, Bytes weights, std::uint32_t cpus,
                              const EngineOptions& options);

std::vector<std::string> Describe(const EnginePlan& plan);

}  // namespace troupe
