// Sees what the router of every layer chose, before anything else has a say in it: what a trace is
// recorded through. Called on the thread of the forward pass, between parallel regions.
#pragma once

#include <cstdint>
#include <span>

#include "expert/pass_facts.h"
#include "kernels/top_experts.h"

namespace troupe {

class RouteObserver {
 public:
  virtual ~RouteObserver() = default;

  // A pass begins. One that fails on its way has no end.
  virtual void PassBegins(const PassFacts& pass) = 0;
  // top_k choices a token, best first, and a row of all experts' scores a token; good during the
  // call.
  virtual void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                      std::span<const float> scores) = 0;
  virtual void PassEnded() = 0;
};

}  // namespace troupe
