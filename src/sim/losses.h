// Servers that are lost and come back: when, by random numbers of their own, and what the others
// know of it. What that does to prompts and calls is the simulation's. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace troupe {

struct LossSetup {
  double mean_up_seconds = 0;  // of a server, until it is lost; 0: none is ever lost
  double away_seconds = 300;   // until it has its experts in memory again
  double notice_seconds = 6;   // until the others know that it is lost

  bool operator==(const LossSetup&) const = default;
};

class Losses {
 public:
  Losses(const LossSetup& setup, std::uint32_t servers, std::uint64_t seed)
      : setup_(setup), servers_(servers), up_(servers) {
    // Numbers of their own, so that users ask the same whatever is lost.
    for (std::uint32_t n = 0; n < servers; ++n) servers_[n].rng = Rng(seed * 2'000'003 + n);
  }

  bool enabled() const { return setup_.mean_up_seconds > 0; }
  const LossSetup& setup() const { return setup_; }
  std::uint64_t count() const { return count_; }

  bool Up(std::uint32_t server) const { return servers_[server].up; }
  // Rises when it is lost: what was begun in an earlier life is gone.
  std::uint32_t LifeOf(std::uint32_t server) const { return servers_[server].life; }

  double NextUpSeconds(std::uint32_t server) {
    return -std::log(1 - servers_[server].rng.Uniform()) * setup_.mean_up_seconds;
  }
  // False for the last one that is there: somebody has to answer.
  bool Lose(std::uint32_t server) {
    TROUPE_CHECK(servers_[server].up);
    if (up_ == 1) return false;
    --up_;
    ++count_;
    servers_[server].up = false;
    ++servers_[server].life;
    return true;
  }
  void Return(std::uint32_t server) {
    TROUPE_CHECK(!servers_[server].up);
    ++up_;
    servers_[server].up = true;
  }

 private:
  struct Server {
    Rng rng{0};
    bool up = true;
    std::uint32_t life = 0;
  };

  LossSetup setup_;
  std::vector<Server> servers_;
  std::uint32_t up_;
  std::uint64_t count_ = 0;
};

}  // namespace troupe
