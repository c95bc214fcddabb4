// Sees what the router of every layer chose, before anything else has a say in it: what a trace is
// recorded through. Called on the thread of the forward pass, between parallel regions.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/top_experts.h"

namespace troupe {

class RouteObserver {
 public:
  virtual ~RouteObserver() = default;

  // So many tokens were handed over together, to go through the layers in one pass or several; as
  // a prompt, or to be scored or answered.
  virtual void Fed(std::size_t tokens, bool prompt) = 0;
  // A pass of `tokens` tokens begins, the first at `position` of its sequence. One that fails on
  // its way has no end.
  virtual void PassBegins(std::size_t tokens, std::size_t position) = 0;
  // top_k choices a token, best first, and a row of all experts' scores a token; good during the
  // call.
  virtual void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                      std::span<const float> scores) = 0;
  virtual void PassEnded() = 0;
};

}  // namespace troupe
