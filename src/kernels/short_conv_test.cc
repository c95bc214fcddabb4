#include "kernels/short_conv.h"

#include <cmath>

#include "kernels/target_testing.h"
#include "quant/exp_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct ConvCase {
  ConvCase(std::size_t channel_count, std::size_t tap_count, std::size_t token_count, Rng& rng)
      : channels(channel_count),
        taps(tap_count),
        tokens(token_count),
        stride(channel_count + 3),
        weights(NormalFloats(rng, tap_count * channel_count)),
        bias(NormalFloats(rng, channel_count)),
        tail(NormalFloats(rng, (tap_count - 1) * channel_count)),
        rows(NormalFloats(rng, token_count * stride)) {}

  // With SiLU also with the bias.
  ShortConv On(std::vector<float>& in_out, const std::vector<float>& before, bool silu) const {
    return {.channels = channels,
            .taps = taps,
            .weights = weights.data(),
            .bias = silu ? bias.data() : nullptr,
            .tail = before.data(),
            .rows = in_out.data(),
            .stride = stride,
            .tokens = tokens,
            .silu = silu};
  }
  float Input(std::size_t behind, std::size_t c) const {  // from the oldest of the tail
    return behind < taps - 1 ? tail[behind * channels + c]
                             : rows[(behind - (taps - 1)) * stride + c];
  }
  std::vector<float> Reference(bool silu) const {
    std::vector<float> out = rows;
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t tap = 0; tap < taps; ++tap) {
          sum = std::fma(Input(t + tap, c), weights[tap * channels + c], sum);
        }
        if (silu) sum += bias[c];
        out[t * stride + c] = silu ? sum * SigmoidReference(sum) : sum;
      }
    }
    return out;
  }

  std::size_t channels, taps, tokens, stride;
  std::vector<float> weights, bias, tail, rows;
};

TEST(ShortConvolution, HasTheBitsOfItsReferenceOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t taps : {2, 3, 4}) {
    for (const std::size_t channels : {1, 16, 50}) {
      for (const std::size_t tokens : {1, 2, 9}) {
        const ConvCase c(channels, taps, tokens, rng);
        for (const bool silu : {false, true}) {
          const std::vector<float> expected = c.Reference(silu);
          ForEachTarget([&] {
            std::vector<float> out = c.rows;
            RunShortConv(c.On(out, c.tail, silu), 0, channels);
            ASSERT_EQ(Bits(out), Bits(expected)) << taps << " taps, " << channels << " channels";
          });
        }
      }
    }
  }
}

TEST(ShortConvolution, AnyCutOfTokensAndChannelsGivesTheSameBits) {
  Rng rng(TestSeed());
  const ConvCase c(40, 4, 23, rng);
  const std::vector<float> whole = c.Reference(true);
  for (int round = 0; round < 30; ++round) {
    std::vector<float> out = c.rows, tail = c.tail, next(tail.size());
    for (std::size_t at = 0; at < c.tokens;) {
      ShortConv piece = c.On(out, tail, true);
      piece.rows += at * c.stride;
      piece.tokens = 1 + rng.Below(std::min<std::size_t>(6, c.tokens - at));
      const std::size_t cut = rng.Below(c.channels + 1);
      CopyConvTail(piece, next.data(), 0, cut);
      CopyConvTail(piece, next.data(), cut, c.channels - cut);
      RunShortConv(piece, cut, c.channels - cut);
      RunShortConv(piece, 0, cut);
      tail = next;
      at += piece.tokens;
    }
    ASSERT_EQ(Bits(out), Bits(whole));
  }
}

}  // namespace
}  // namespace troupe
