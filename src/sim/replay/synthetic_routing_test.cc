// Routing of kinds that no recorded trace may be like: nowhere may the default policy hit notably
// less often than the better of the two simple ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/rng.h"
#include "sim/replay/replay_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct Shape {
  std::uint32_t layers, experts, top_k;
};

using Weights = std::vector<double>;  // how likely each expert is

// Different experts, each with its likelihood among those that are left.
std::vector<std::uint16_t> Draw(Weights weights, std::uint32_t count, Rng& rng) {
  std::vector<std::uint16_t> drawn;
  while (drawn.size() < count) {
    double at = rng.Uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t e = 0;
    while (e + 1 < weights.size() && (at -= weights[e]) >= 0) ++e;
    if (weights[e] == 0) continue;
    weights[e] = 0;
    drawn.push_back(static_cast<std::uint16_t>(e));
  }
  return drawn;
}

// The n-th likeliest is 1 / n^s times as likely as the first; which is which is random.
Weights Zipf(std::uint32_t experts, double s, Rng& rng) {
  Weights weights;
  for (std::uint32_t e = 0; e < experts; ++e) weights.push_back(std::pow(e + 1, -s));
  std::shuffle(weights.begin(), weights.end(), rng);
  return weights;
}

// What a layer's tokens choose, token by token.
using Layer = std::vector<std::vector<std::uint16_t>>;
using Kind = std::function<Layer(const Shape&, std::uint32_t tokens, Rng&)>;

Layer Uniform(const Shape& shape, std::uint32_t tokens, Rng& rng) {
  Layer layer;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    layer.push_back(Draw(Weights(shape.experts, 1), shape.top_k, rng));
  }
  return layer;
}

Kind Skewed(double s) {
  return [s](const Shape& shape, std::uint32_t tokens, Rng& rng) {
    const Weights weights = Zipf(shape.experts, s, rng);
    Layer layer;
    for (std::uint32_t t = 0; t < tokens; ++t) layer.push_back(Draw(weights, shape.top_k, rng));
    return layer;
  };
}

// After every `period` tokens other experts are hot, one of four sets in turn.
Kind Switching(std::uint32_t period) {
  return [period](const Shape& shape, std::uint32_t tokens, Rng& rng) {
    std::vector<Weights> domains;
    for (int d = 0; d < 4; ++d) domains.push_back(Zipf(shape.experts, 1.5, rng));
    Layer layer;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      layer.push_back(Draw(domains[t / period % domains.size()], shape.top_k, rng));
    }
    return layer;
  };
}

// Half of the tokens choose what the one before chose.
Layer Sticky(const Shape& shape, std::uint32_t tokens, Rng& rng) {
  Layer layer = Uniform(shape, tokens, rng);
  for (std::uint32_t t = 1; t < tokens; ++t) {
    if (rng.Below(2) == 0) layer[t] = layer[t - 1];
  }
  return layer;
}

// One after the other and round again: the worst for whoever gives up the least recent.
Layer Scan(const Shape& shape, std::uint32_t tokens, Rng&) {
  Layer layer(tokens);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t k = 0; k < shape.top_k; ++k) {
      layer[t].push_back(static_cast<std::uint16_t>((t * shape.top_k + k) % shape.experts));
    }
  }
  return layer;
}

// What is likely changes a little with every token.
Layer Drifting(const Shape& shape, std::uint32_t tokens, Rng& rng) {
  Weights weights = Zipf(shape.experts, 1.5, rng);
  Layer layer;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    std::swap(weights[rng.Below(shape.experts)], weights[rng.Below(shape.experts)]);
    layer.push_back(Draw(weights, shape.top_k, rng));
  }
  return layer;
}

class SyntheticRouting : public ReplayedTrace {
 protected:
  void Make(const Shape& shape, std::uint32_t tokens, const Kind& kind, Rng& rng) {
    TraceHeader header{
        .model = "m", .layers = shape.layers, .experts = shape.experts, .top_k = shape.top_k};
    TraceBlock block{.domains = {""}, .segments = {{.tokens = tokens}}, .tokens = tokens};
    for (std::uint32_t l = 0; l < shape.layers; ++l) {
      header.moe_layers.push_back(l);
      for (const auto& chosen : kind(shape, tokens, rng)) {
        block.ids.insert(block.ids.end(), chosen.begin(), chosen.end());
      }
    }
    Write(header, block);
  }
};

// In points of the hit rate. What cannot be predicted costs echo up to this: it listens to chance.
constexpr double kNotably = 3.5;

TEST_F(SyntheticRouting, EchoIsNowhereNotablyBelowTheBetterOfLruAndLfu) {
  const std::vector<std::pair<std::string, Kind>> kinds = {{"uniform", Uniform},
                                                           {"Zipf 1", Skewed(1)},
                                                           {"Zipf 2", Skewed(2)},
                                                           {"switching often", Switching(50)},
                                                           {"switching seldom", Switching(300)},
                                                           {"sticky", Sticky},
                                                           {"scan", Scan},
                                                           {"drifting", Drifting}};
  Rng rng(TestSeed());
  double worst = 100, best = -100;
  for (const Shape shape : {Shape{4, 8, 2}, Shape{1, 64, 6}, Shape{3, 128, 1}, Shape{2, 256, 8}}) {
    for (const auto& [name, kind] : kinds) {
      Make(shape, 800, kind, rng);
      std::vector<ReplaySpec> specs;
      for (const bool per_layer : {true, false}) {
        for (const double share : {0.25, 0.5}) {
          const std::uint32_t slots = SlotsFor(Open().header(), share);
          // Where one token's experts fill the cache, recency is all there is to know.
          if (slots <= shape.layers * shape.top_k) continue;
          for (const char* policy : {"lru", "lfu", "echo"}) {
            specs.push_back({.policy = policy, .slots = slots, .per_layer = per_layer});
          }
        }
      }
      const auto outcomes = Run(specs);
      for (std::size_t i = 0; i < outcomes.size(); i += 3) {
        const auto rate = [&](std::size_t k) { return 100 * outcomes[i + k].result.all.HitRate(); };
        const double gain = rate(2) - std::max(rate(0), rate(1));
        EXPECT_GT(gain, -kNotably)
            << name << ", " << shape.top_k << " of " << shape.experts << " in " << shape.layers
            << " layers, " << specs[i].slots
            << (specs[i].per_layer ? " slots by layer" : " slots in one pool");
        worst = std::min(worst, gain);
        best = std::max(best, gain);
      }
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(best, 20);  // of a scan, which comes back as it was
}

TEST_F(SyntheticRouting, EveryPolicyPlaysTracesOfOneTokenOneLayerOneExpertAndOfAllExperts) {
  Rng rng(TestSeed());
  for (const Shape shape : {Shape{1, 1, 1}, Shape{1, 8, 8}, Shape{3, 256, 1}, Shape{1, 300, 2}}) {
    for (const std::uint32_t tokens : {1u, 2u, 40u}) {
      Make(shape, tokens, Uniform, rng);
      std::vector<ReplaySpec> specs;
      for (const std::string& policy : RoutePolicyNames()) specs.push_back({.policy = policy});
      specs.push_back({.policy = "optimum"});
      for (ReplaySpec& spec : specs) spec.slots = SlotsFor(Open().header(), 0.5);
      for (const ReplayOutcome& outcome : Run(specs)) {
        EXPECT_EQ(outcome.result.all.asks, tokens * shape.layers * shape.top_k);
        EXPECT_LE(outcome.result.loads, outcome.result.all.asks);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
