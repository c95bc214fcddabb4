// Which nodes the last starts belonged to that are over: a check of a peer's answer may be done
// when that has started anew. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "cluster/wire/hello.h"

namespace troupe {

class EarlierLives {
 public:
  void Add(const PeerHello& hello) {
    lives_.push_back(hello);
    if (lives_.size() > kMost) lives_.pop_front();
  }
  std::optional<PeerHello> Find(std::uint64_t start) const {
    for (const PeerHello& life : lives_) {
      if (life.start_id == start) return life;
    }
    return std::nullopt;
  }
  void Clear() { lives_.clear(); }

 private:
  static constexpr std::size_t kMost = 64;
  std::deque<PeerHello> lives_;
};

}  // namespace troupe
