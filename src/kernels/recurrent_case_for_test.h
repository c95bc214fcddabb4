// A head with random rows and a random state, for tests of what tokens do to it.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/recurrent_head.h"
#include "kernels/target_testing.h"

namespace troupe {

struct RecurrentCase {
  RecurrentCase(std::size_t keys, std::size_t values, std::size_t count, Rng& rng)
      : key_dim(keys),
        value_dim(values),
        tokens(count),
        stride(2 * keys + values + 3),
        rows(NormalFloats(rng, count * stride, 0.3)),
        state(NormalFloats(rng, keys * values)) {
    for (std::size_t t = 0; t < count; ++t) {
      decay.push_back(static_cast<float>(rng.Uniform()));
      beta.push_back(static_cast<float>(rng.Uniform()));
    }
  }

  struct Ends {
    std::vector<float> out, state;
  };

  RecurrentHead Head(std::vector<float>& out, const float* before, float* after) const {
    return {.key_dim = key_dim,
            .value_dim = value_dim,
            .tokens = tokens,
            .q = rows.data(),
            .k = rows.data() + key_dim,
            .v = rows.data() + 2 * key_dim,
            .stride = stride,
            .decay = decay.data(),
            .beta = beta.data(),
            .gate_stride = 1,
            .out = out.data(),
            .out_stride = value_dim + 5,
            .before = before,
            .after = after};
  }
  std::vector<float> NewOut() const { return std::vector<float>(tokens * (value_dim + 5)); }

  float& At(std::vector<float>& s, std::size_t key, std::size_t column) const {
    return s[(column / 16 * key_dim + key) * 16 + column % 16];
  }
  template <typename F>
  float Sum(F&& term) const {  // term(key, sum so far)
    float sums[8] = {};
    for (std::size_t i = 0; i < key_dim; ++i) sums[i % 8] = term(i, sums[i % 8]);
    for (const int half : {4, 2, 1}) {
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  }
  std::size_t key_dim, value_dim, tokens, stride;
  std::vector<float> rows, state, decay, beta;
};

}  // namespace troupe
