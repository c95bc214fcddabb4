#include "kernels/state_space.h"

#include <cmath>

#include "kernels/recurrent_case_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr float kSkip = 0.7f;

struct SpaceCase : RecurrentCase {
  using RecurrentCase::RecurrentCase;

  Ends Run() const {
    Ends ends{NewOut(), std::vector<float>(state.size())};
    const RecurrentHead head = Head(ends.out, state.data(), ends.state.data());
    RunStateSpace(head, kSkip, 0, head.tiles());
    return ends;
  }
  Ends Reference() const {
    Ends ends{NewOut(), state};
    for (std::size_t t = 0; t < tokens; ++t) {
      const float *q = &rows[t * stride], *k = q + key_dim, *v = k + key_dim;
      for (std::size_t c = 0; c < value_dim; ++c) {
        const float learned = v[c] * beta[t];
        const float said = Sum([&](std::size_t i, float sum) {
          float& s = At(ends.state, i, c);
          s = std::fma(k[i], learned, s * decay[t]);
          return std::fma(s, q[i], sum);
        });
        ends.out[t * (value_dim + 5) + c] = std::fma(v[c], kSkip, said);
      }
    }
    return ends;
  }
};

TEST(StateSpace, HasTheBitsOfItsReferenceOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t keys : {8, 64, 128}) {
    for (const std::size_t values : {16, 48, 64}) {
      for (const std::size_t tokens : {1, 2, 17}) {
        const SpaceCase c(keys, values, tokens, rng);
        const SpaceCase::Ends expected = c.Reference();
        ForEachTarget([&] {
          const SpaceCase::Ends ends = c.Run();
          ASSERT_EQ(Bits(ends.out), Bits(expected.out)) << keys << "x" << values;
          ASSERT_EQ(Bits(ends.state), Bits(expected.state)) << keys << "x" << values;
        });
      }
    }
  }
}

TEST(StateSpace, AnyCutOfTheTokensAndOfTheTilesGivesTheSameBits) {
  Rng rng(TestSeed());
  const SpaceCase c(64, 96, 40, rng);
  const SpaceCase::Ends whole = c.Run();
  for (int round = 0; round < 20; ++round) {
    SpaceCase::Ends ends{c.NewOut(), c.state};
    std::size_t at = 0;
    while (at < c.tokens) {
      RecurrentHead head = c.Head(ends.out, ends.state.data(), ends.state.data());
      head.q += at * c.stride;
      head.k += at * c.stride;
      head.v += at * c.stride;
      head.decay += at;
      head.beta += at;
      head.out += at * head.out_stride;
      head.tokens = 1 + rng.Below(c.tokens - at);
      const std::size_t cut = rng.Below(head.tiles() + 1);
      RunStateSpace(head, kSkip, cut, head.tiles() - cut);
      RunStateSpace(head, kSkip, 0, cut);
      at += head.tokens;
    }
    ASSERT_EQ(Bits(ends.out), Bits(whole.out));
    ASSERT_EQ(Bits(ends.state), Bits(whole.state));
  }
}

// Where a delta net has its last value under a key, a state space has the sum of all, as far as
// they are not forgotten.
TEST(StateSpace, AddsUpWhatItWasToldUnderAKey) {
  constexpr std::size_t kKeys = 16, kValues = 16;
  std::vector<float> state(kKeys * kValues), out(kValues);
  const auto step = [&](std::size_t write, float value, float decay, std::size_t read) {
    std::vector<float> row(2 * kKeys + kValues);
    row[read] = 1;
    row[kKeys + write] = 1;
    std::fill(row.begin() + 2 * kKeys, row.end(), value);
    const float beta = 2;
    RunStateSpace({.key_dim = kKeys,
                   .value_dim = kValues,
                   .tokens = 1,
                   .q = row.data(),
                   .k = row.data() + kKeys,
                   .v = row.data() + 2 * kKeys,
                   .decay = &decay,
                   .beta = &beta,
                   .out = out.data(),
                   .before = state.data(),
                   .after = state.data()},
                  10, 0, 1);
    return out.front();
  };
  EXPECT_EQ(step(3, 7.0f, 1.0f, 3), 2 * 7 + 10 * 7.0f);
  EXPECT_EQ(step(5, 1.0f, 0.5f, 3), 7 + 10 * 1.0f);
  EXPECT_EQ(step(3, 4.0f, 1.0f, 3), 7 + 2 * 4 + 10 * 4.0f);
  EXPECT_EQ(step(3, 0.0f, 1.0f, 5), 2.0f);
  EXPECT_EQ(step(3, 0.0f, 0.0f, 3), 0.0f);
}

}  // namespace
}  // namespace troupe
