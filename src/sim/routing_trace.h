// What a router chose: for each token of each layer the experts, as recorded with a real model or
// drawn from recorded frequencies. A value; trace_file.h reads it from files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/status.h"

namespace troupe {

struct RoutingTrace {
  std::uint32_t layers = 0;
  std::uint32_t experts = 0;  // of a layer
  std::uint32_t top_k = 0;
  std::uint32_t tokens = 0;
  std::vector<std::uint16_t> ids;              // [layer][token][k]
  std::vector<std::uint32_t> sequence_starts;  // rising, the first is 0; ends are the next starts
  // At the end of each sequence, that a model made of the rest; empty: none of any.
  std::vector<std::uint32_t> answer_tokens;

  std::span<const std::uint16_t> Chosen(std::uint32_t layer, std::uint32_t token) const {
    return std::span(ids).subspan((static_cast<std::size_t>(layer) * tokens + token) * top_k,
                                  top_k);
  }
  std::uint32_t InputLength(std::size_t i) const {
    return SequenceLength(i) - (answer_tokens.empty() ? 0 : answer_tokens[i]);
  }
  std::uint32_t SequenceLength(std::size_t i) const {
    return (i + 1 < sequence_starts.size() ? sequence_starts[i + 1] : tokens) - sequence_starts[i];
  }
};

Status Validate(const RoutingTrace& trace);

// How often each expert was chosen a token, by ExpertIndex.
std::vector<double> ActivationsPerToken(const RoutingTrace& trace);

// Of its sequences those of even number (0) or of odd number (1): to learn from some what the
// others are served by. REQUIRES: it has one of them.
RoutingTrace HalfOf(const RoutingTrace& trace, std::size_t first);

// Tokens that choose independently of each other by such frequencies ([layer][expert], any unit):
// for models whose routing was published as counts only.
RoutingTrace DrawTrace(const std::vector<std::vector<double>>& frequencies, std::uint32_t top_k,
                       std::uint32_t sequences, std::uint32_t tokens_each, Rng& rng);

}  // namespace troupe
