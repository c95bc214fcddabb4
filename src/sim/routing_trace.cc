#include "sim/routing_trace.h"

#include <algorithm>
#include <numeric>

namespace troupe {

Status Validate(const RoutingTrace& trace) {
  if (trace.layers == 0 || trace.tokens == 0 || trace.top_k == 0 || trace.sequence_starts.empty()) {
    return InvalidArgument("a routing trace without layers, tokens, experts a token or sequences");
  }
  const std::uint64_t expected = std::uint64_t{trace.layers} * trace.tokens * trace.top_k;
  if (trace.ids.size() != expected) {
    return InvalidArgument("a routing trace of {} choices, expected {} layers x {} tokens x {}",
                           trace.ids.size(), trace.layers, trace.tokens, trace.top_k);
  }
  for (std::size_t i = 0; i < trace.sequence_starts.size(); ++i) {
    const std::uint32_t start = trace.sequence_starts[i];
    const bool rises = i == 0 ? start == 0 : start > trace.sequence_starts[i - 1];
    if (!rises || start >= trace.tokens) {
      return InvalidArgument("sequence {} begins at token {}, expected rising ones from 0 below {}",
                             i, start, trace.tokens);
    }
  }
  for (std::size_t i = 0; i < trace.answer_tokens.size(); ++i) {
    if (trace.answer_tokens.size() == trace.sequence_starts.size() &&
        trace.answer_tokens[i] < trace.SequenceLength(i)) {
      continue;
    }
    return InvalidArgument("an answer of {} tokens to sequence {} of {}, expected a shorter one",
                           trace.answer_tokens[i], i, trace.sequence_starts.size());
  }
  for (std::uint32_t l = 0; l < trace.layers; ++l) {
    for (std::uint32_t t = 0; t < trace.tokens; ++t) {
      const auto chosen = trace.Chosen(l, t);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        const bool twice = std::find(chosen.begin(), chosen.begin() + i, chosen[i]) !=
                           chosen.begin() + static_cast<std::ptrdiff_t>(i);
        if (chosen[i] < trace.experts && !twice) continue;
        return InvalidArgument("layer {}, token {}: expert {}, expected different ones below {}", l,
                               t, chosen[i], trace.experts);
      }
    }
  }
  return OkStatus();
}

RoutingTrace HalfOf(const RoutingTrace& trace, std::size_t first) {
  RoutingTrace half{.layers = trace.layers, .experts = trace.experts, .top_k = trace.top_k};
  for (std::size_t i = first; i < trace.sequence_starts.size(); i += 2) {
    half.sequence_starts.push_back(half.tokens);
    half.tokens += trace.SequenceLength(i);
    if (!trace.answer_tokens.empty()) half.answer_tokens.push_back(trace.answer_tokens[i]);
  }
  half.ids.reserve(std::size_t{half.layers} * half.tokens * half.top_k);
  for (std::uint32_t l = 0; l < trace.layers; ++l) {
    for (std::size_t i = first; i < trace.sequence_starts.size(); i += 2) {
      const std::size_t at = std::size_t{l} * trace.tokens + trace.sequence_starts[i];
      const auto chosen = std::span(trace.ids).subspan(
          at * trace.top_k, std::size_t{trace.SequenceLength(i)} * trace.top_k);
      half.ids.insert(half.ids.end(), chosen.begin(), chosen.end());
    }
  }
  return half;
}

std::vector<double> ActivationsPerToken(const RoutingTrace& trace) {
  std::vector<double> frequencies(static_cast<std::size_t>(trace.layers) * trace.experts, 0);
  for (std::uint32_t l = 0; l < trace.layers; ++l) {
    for (std::uint32_t t = 0; t < trace.tokens; ++t) {
      for (const std::uint16_t e : trace.Chosen(l, t)) {
        frequencies[static_cast<std::size_t>(l) * trace.experts + e] += 1;
      }
    }
  }
  for (double& f : frequencies) f /= trace.tokens;
  return frequencies;
}

RoutingTrace DrawTrace(const std::vector<std::vector<double>>& frequencies, std::uint32_t top_k,
                       std::uint32_t sequences, std::uint32_t tokens_each, Rng& rng) {
  RoutingTrace trace{.layers = static_cast<std::uint32_t>(frequencies.size()),
                     .experts = static_cast<std::uint32_t>(frequencies.front().size()),
                     .top_k = top_k,
                     .tokens = sequences * tokens_each};
  for (std::uint32_t i = 0; i < sequences; ++i) trace.sequence_starts.push_back(i * tokens_each);
  std::vector<double> left;
  for (const std::vector<double>& layer : frequencies) {
    for (std::uint32_t t = 0; t < trace.tokens; ++t) {
      left = layer;
      double sum = std::accumulate(left.begin(), left.end(), 0.0);
      for (std::uint32_t i = 0; i < top_k; ++i) {
        double at = rng.Uniform() * sum;
        std::size_t chosen = left.size();
        for (std::size_t e = 0; e < left.size(); ++e) {  // the last positive one catches rounding
          if (left[e] <= 0) continue;
          chosen = e;
          if (at < left[e]) break;
          at -= left[e];
        }
        if (chosen == left.size()) {  // fewer were ever used than a token needs: any other
          do {
            chosen = rng.Below(left.size());
          } while (left[chosen] < 0);
        }
        trace.ids.push_back(static_cast<std::uint16_t>(chosen));
        sum -= std::max(0.0, left[chosen]);
        left[chosen] = -1;
      }
    }
  }
  return trace;
}

}  // namespace troupe
