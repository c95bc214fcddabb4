// Computes again what a peer has answered, with this node's own weights: a peer that lies, or whose
// disk has rotted, does not have the bytes that all others have.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "base/thread_pool.h"
#include "cluster/peer_calls.h"
#include "cluster/received_rows.h"
#include "model/expert_mlp.h"

namespace troupe {

class SpotChecker {
 public:
  // Has `use` run while the expert's weights are in memory.
  using WithExpert = std::function<Status(ExpertId, const std::function<void(const Mlp&)>& use)>;

  // For experts of hidden rows as long as `ff`.
  SpotChecker(std::uint32_t width, std::size_t ff, WithExpert with_expert)
      : width_(width), ff_(ff), with_expert_(std::move(with_expert)) {}

  // Whether the answer is this node's own in the form in which it came, byte by byte. Not on two
  // threads at once.
  Result<bool> IsTrue(const SpotCheck& check);

 private:
  const std::uint32_t width_;
  const std::size_t ff_;
  const WithExpert with_expert_;
  ReceivedRows rows_;
  ThreadPool pool_{1};
};

}  // namespace troupe
