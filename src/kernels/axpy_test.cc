#include "kernels/axpy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/target.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TEST(Axpy, EqualsFmaByElementOnEveryTargetLengthAndAlignment) {
  Rng rng(TestSeed());
  for (Target target : SupportedTargets()) {
    ForceTarget(target);
    for (std::size_t n = 0; n < 70; ++n) {
      const std::size_t shift = n % 5;
      std::vector<float> x(n + shift), out(n + shift + 1);
      for (float& v : x) v = static_cast<float>(rng.Normal());
      for (float& v : out) v = static_cast<float>(rng.Normal());
      std::vector<float> expected = out;
      for (std::size_t i = 0; i < n; ++i) {
        expected[shift + i] = std::fma(0.7f, x[shift + i], expected[shift + i]);
      }
      Axpy(0.7f, x.data() + shift, out.data() + shift, n);
      ASSERT_EQ(out, expected) << Name(target) << ", " << n;  // also: nothing beside is touched
    }
  }
  ForceTarget(std::nullopt);
}

}  // namespace
}  // namespace troupe
