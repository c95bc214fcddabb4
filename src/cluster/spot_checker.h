// Computes again what a peer has answered, with this node's own weights: a peer that lies, or whose
// disk has rotted, does not have the bytes that all others have. It may as well be the own disk
// that has rotted, so the own weights are checked before anybody is said to be wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "cluster/peer_calls.h"
#include "cluster/received_rows.h"
#include "model/expert_mlp.h"

namespace troupe {

struct SpotResult {
  enum class Found {
    kTrue,  // this node's own rows, in the form in which they came
    kPeerWrong,
    kOwnWrong,  // the own weights are not those of their checksum
    kUnproven,  // one of the two is wrong: no checksum is known
  };
  Found found = Found::kTrue;
  std::vector<float> own;  // what was computed here, as it would have come

  bool operator==(const SpotResult&) const = default;
};

// Byte by byte.
bool AreSameRows(std::span<const float> one, std::span<const float> other);

class SpotChecker {
 public:
  // Has `use` run while the expert's weights are in memory.
  using WithExpert = std::function<Status(ExpertId, const std::function<void(const Mlp&)>& use)>;
  // Whether the weights are those that they should be; nothing: that is not known.
  using IsWhole = std::function<std::optional<bool>(ExpertId, const Mlp&)>;

  // For experts of hidden rows as long as `ff`.
  SpotChecker(std::uint32_t width, std::size_t ff, WithExpert with_expert, IsWhole is_whole)
      : width_(width),
        ff_(ff),
        with_expert_(std::move(with_expert)),
        is_whole_(std::move(is_whole)) {}

  // Not on two threads at once.
  Result<SpotResult> Check(const SpotCheck& check);

 private:
  const std::uint32_t width_;
  const std::size_t ff_;
  const WithExpert with_expert_;
  const IsWhole is_whole_;
  ReceivedRows rows_;
  ThreadPool pool_{1};
};

}  // namespace troupe
