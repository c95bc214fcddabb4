#include "kernels/delta_net.h"

#include <cmath>

#include "kernels/recurrent_case_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct DeltaCase : RecurrentCase {
  using RecurrentCase::RecurrentCase;

  Ends Run() const {
    Ends ends{NewOut(), std::vector<float>(state.size())};
    const DeltaNetHead head = Head(ends.out, state.data(), ends.state.data());
    RunDeltaNet(head, 0, head.tiles());
    return ends;
  }

  Ends Reference() const {
    Ends ends{NewOut(), state};
    for (std::size_t t = 0; t < tokens; ++t) {
      const float *q = &rows[t * stride], *k = q + key_dim, *v = k + key_dim;
      for (std::size_t c = 0; c < value_dim; ++c) {
        const float known = Sum(
            [&](std::size_t i, float sum) { return std::fma(At(ends.state, i, c), k[i], sum); });
        const float d = (v[c] - decay[t] * known) * beta[t];
        ends.out[t * (value_dim + 5) + c] = Sum([&](std::size_t i, float sum) {
          float& s = At(ends.state, i, c);
          s = std::fma(k[i], d, s * decay[t]);
          return std::fma(s, q[i], sum);
        });
      }
    }
    return ends;
  }
};

TEST(DeltaNet, HasTheBitsOfItsReferenceOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t keys : {8, 64, 128}) {
    for (const std::size_t values : {16, 48, 128}) {
      for (const std::size_t tokens : {1, 2, 17}) {
        const DeltaCase c(keys, values, tokens, rng);
        const DeltaCase::Ends expected = c.Reference();
        ForEachTarget([&] {
          const DeltaCase::Ends ends = c.Run();
          ASSERT_EQ(Bits(ends.out), Bits(expected.out)) << keys << "x" << values;
          ASSERT_EQ(Bits(ends.state), Bits(expected.state)) << keys << "x" << values;
        });
      }
    }
  }
}

TEST(DeltaNet, AnyCutOfTheTokensAndOfTheTilesGivesTheSameBits) {
  Rng rng(TestSeed());
  const DeltaCase c(64, 96, 40, rng);
  const DeltaCase::Ends whole = c.Run();
  for (int round = 0; round < 20; ++round) {
    DeltaCase::Ends ends{c.NewOut(), c.state};
    std::size_t at = 0;
    while (at < c.tokens) {
      const std::size_t count = 1 + rng.Below(c.tokens - at);
      DeltaNetHead head = c.Head(ends.out, ends.state.data(), ends.state.data());
      head.q += at * c.stride;
      head.k += at * c.stride;
      head.v += at * c.stride;
      head.decay += at;
      head.beta += at;
      head.out += at * head.out_stride;
      head.tokens = count;
      const std::size_t cut = rng.Below(head.tiles() + 1);
      RunDeltaNet(head, cut, head.tiles() - cut);
      RunDeltaNet(head, 0, cut);
      at += count;
    }
    ASSERT_EQ(Bits(ends.out), Bits(whole.out));
    ASSERT_EQ(Bits(ends.state), Bits(whole.state));
  }
}

// With unit keys, no decay and beta 1 the state is a table: it answers with the value that was
// stored last under a key, whatever was there before.
TEST(DeltaNet, WithUnitKeysItIsATableThatForgetsWhatItOverwrites) {
  constexpr std::size_t kKeys = 16, kValues = 16;
  std::vector<float> state(kKeys * kValues), out(kValues);
  const std::vector<float> ones(1, 1.0f);
  const auto step = [&](std::size_t write, float value, std::size_t read) {
    std::vector<float> row(2 * kKeys + kValues);
    row[read] = 1;
    row[kKeys + write] = 1;
    std::fill(row.begin() + 2 * kKeys, row.end(), value);
    RunDeltaNet({.key_dim = kKeys,
                 .value_dim = kValues,
                 .tokens = 1,
                 .q = row.data(),
                 .k = row.data() + kKeys,
                 .v = row.data() + 2 * kKeys,
                 .decay = ones.data(),
                 .beta = ones.data(),
                 .out = out.data(),
                 .before = state.data(),
                 .after = state.data()},
                0, 1);
    return out.front();
  };
  EXPECT_EQ(step(3, 7.0f, 3), 7.0f);
  EXPECT_EQ(step(5, 2.0f, 3), 7.0f);
  EXPECT_EQ(step(3, 4.0f, 3), 4.0f);
  EXPECT_EQ(step(3, 4.0f, 5), 2.0f);
  EXPECT_EQ(step(3, 4.0f, 6), 0.0f);
}

}  // namespace
}  // namespace troupe
