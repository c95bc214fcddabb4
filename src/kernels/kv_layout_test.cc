#include "kernels/kv_layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "base/half.h"
#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Stored {
  std::vector<float> keys, values;  // [head][position][dim]
};

// Rows go in by heads and in two pieces, as prefill and decode do; some positions stay unwritten.
std::vector<std::byte> Fill(const KvLayout& layout, std::size_t positions, const Stored& rows) {
  std::vector<std::byte> cache(layout.TotalBytes().count(), std::byte{0xff});
  for (std::size_t head = 0; head < layout.kv_heads; ++head) {
    const auto store = [&](auto&& put, const std::vector<float>& from, std::size_t dim) {
      const float* const first = from.data() + head * positions * dim;
      const std::size_t half = positions / 2;
      put(layout, cache.data(), head, 0, half, first, dim);
      put(layout, cache.data(), head, half, positions - half, first + half * dim, dim);
    };
    store(StoreKeys, rows.keys, layout.k_dim);
    if (!layout.values_in_keys) store(StoreValues, rows.values, layout.v_dim);
  }
  return cache;
}

std::vector<KvLayout> Layouts() {
  return {
      {.type = KvType::kF16, .kv_heads = 2, .k_dim = 20, .v_dim = 36, .capacity = 48},
      {.type = KvType::kF16, .kv_heads = 1, .k_dim = 128, .v_dim = 128, .capacity = 64},
      {.type = KvType::kQ8_0, .kv_heads = 3, .k_dim = 64, .v_dim = 32, .capacity = 48},
      {.type = KvType::kQ8_0,
       .kv_heads = 1,
       .k_dim = 96,
       .v_dim = 64,
       .values_in_keys = true,
       .capacity = 48},
  };
}

// What one group of 32 is stored as.
void QuantizeReference(float* x) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = HalfToFloat(FloatToHalf(std::min(largest / 127.0f, 65504.0f)));
  const float inverse = scale == 0 ? 0.0f : 1.0f / scale;
  for (int i = 0; i < 32; ++i) {
    x[i] = std::nearbyint(std::clamp(x[i] * inverse, -127.0f, 127.0f)) * scale + 0.0f;
  }
}

std::vector<float> StoredReference(KvType type, std::vector<float> x) {
  if (type == KvType::kQ8_0) {
    for (std::size_t i = 0; i < x.size(); i += 32) QuantizeReference(x.data() + i);
  } else {
    for (float& v : x) v = HalfToFloat(FloatToHalf(std::clamp(v, -65504.0f, 65504.0f)));
  }
  return x;
}

TEST(KvLayout, GivesBackWhatTheTypeKeepsOfEveryRowOnEveryTarget) {
  Rng rng(TestSeed());
  constexpr std::size_t kPositions = 37;
  for (const KvLayout& layout : Layouts()) {
    ASSERT_TRUE(layout.Check().ok());
    Stored rows{NormalFloats(rng, layout.kv_heads * kPositions * layout.k_dim),
                NormalFloats(rng, layout.kv_heads * kPositions * layout.v_dim)};
    // Rows of zeros, of huge and of tiny numbers: a scale of zero, one that saturates, subnormals.
    std::fill_n(rows.keys.begin(), layout.k_dim, 0.0f);
    std::fill_n(rows.keys.begin() + layout.k_dim, layout.k_dim, 1e9f);
    std::fill_n(rows.values.begin(), layout.v_dim, -1e-7f);
    const Stored expected{StoredReference(layout.type, rows.keys),
                          StoredReference(layout.type, rows.values)};
    ForEachTarget([&] {
      const std::vector<std::byte> cache = Fill(layout, kPositions, rows);
      for (std::size_t head = 0; head < layout.kv_heads; ++head) {
        for (std::size_t p = 0; p < kPositions; ++p) {
          std::vector<float> key(layout.k_dim), value(layout.v_dim);
          LoadKey(layout, cache.data(), head, p, key.data());
          const auto k = expected.keys.begin() +
                         static_cast<std::ptrdiff_t>((head * kPositions + p) * layout.k_dim);
          ASSERT_TRUE(std::equal(key.begin(), key.end(), k)) << "head " << head << ", key " << p;
          if (layout.values_in_keys) continue;
          LoadValue(layout, cache.data(), head, p, value.data());
          const auto v = expected.values.begin() +
                         static_cast<std::ptrdiff_t>((head * kPositions + p) * layout.v_dim);
          ASSERT_TRUE(std::equal(value.begin(), value.end(), v))
              << "head " << head << ", value " << p;
        }
      }
    });
  }
}

TEST(KvLayout, StoresTheSameBytesOnEveryTarget) {
  Rng rng(TestSeed());
  for (const KvLayout& layout : Layouts()) {
    const Stored rows{NormalFloats(rng, layout.kv_heads * 40 * layout.k_dim),
                      NormalFloats(rng, layout.kv_heads * 40 * layout.v_dim)};
    ForceTarget(Target::kScalar);
    const std::vector<std::byte> expected = Fill(layout, 40, rows);
    ForEachTarget([&] { ASSERT_EQ(Fill(layout, 40, rows), expected); });
  }
}

TEST(KvLayout, StoringOneRowLeavesAllOthers) {
  Rng rng(TestSeed());
  for (const KvLayout& layout : Layouts()) {
    const Stored rows{NormalFloats(rng, layout.kv_heads * 40 * layout.k_dim),
                      NormalFloats(rng, layout.kv_heads * 40 * layout.v_dim)};
    std::vector<std::byte> cache = Fill(layout, 40, rows);
    const std::vector<float> row = NormalFloats(rng, layout.k_dim);
    std::vector<float> before(layout.k_dim), after(layout.k_dim);
    for (std::size_t p : {19, 21}) {
      LoadKey(layout, cache.data(), 0, p, before.data());
      StoreKeys(layout, cache.data(), 0, 20, 1, row.data(), 0);
      LoadKey(layout, cache.data(), 0, p, after.data());
      EXPECT_EQ(before, after);
    }
    LoadKey(layout, cache.data(), 0, 20, after.data());
    EXPECT_EQ(after, StoredReference(layout.type, row));
  }
}

TEST(KvLayout, HalvesKeepNaNAndSaturateInsteadOfBecomingInfinite) {
  const KvLayout layout{.kv_heads = 1, .k_dim = 4, .v_dim = 4, .capacity = 16};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> row = {kInfinity, -kInfinity, 70000.0f,
                                  std::numeric_limits<float>::quiet_NaN()};
  ForEachTarget([&] {
    std::vector<std::byte> cache(layout.TotalBytes().count());
    StoreValues(layout, cache.data(), 0, 3, 1, row.data(), 4);
    std::vector<float> out(4);
    LoadValue(layout, cache.data(), 0, 3, out.data());
    EXPECT_EQ(out[0], 65504.0f);
    EXPECT_EQ(out[1], -65504.0f);
    EXPECT_EQ(out[2], 65504.0f);
    EXPECT_TRUE(std::isnan(out[3]));
  });
}

TEST(KvLayout, CountsItsBytes) {
  const KvLayout f16{.kv_heads = 4, .k_dim = 128, .v_dim = 120, .capacity = 1024};
  EXPECT_EQ(f16.TotalBytes(), Bytes(4 * 1024 * (128 * 2 + 128 * 2)));
  const KvLayout q8{
      .type = KvType::kQ8_0, .kv_heads = 4, .k_dim = 128, .v_dim = 64, .capacity = 1024};
  EXPECT_EQ(q8.TotalBytes(), Bytes(4 * 1024 * (4 * 34 + 2 * 34)));
  const KvLayout mla{
      .kv_heads = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true, .capacity = 64};
  EXPECT_EQ(mla.TotalBytes(), Bytes(64 * 576 * 2));
}

TEST(KvLayout, CheckNamesWhatDoesNotFit) {
  KvLayout layout{.type = KvType::kQ8_0, .kv_heads = 1, .k_dim = 80, .v_dim = 64, .capacity = 16};
  EXPECT_THAT(layout.Check().message(), HasSubstr("80 key"));
  layout.type = KvType::kF16;
  EXPECT_TRUE(layout.Check().ok());
  layout.capacity = 17;
  EXPECT_THAT(layout.Check().message(), HasSubstr("17 positions"));
  layout.capacity = 32;
  layout.values_in_keys = true;
  layout.v_dim = 96;
  EXPECT_THAT(layout.Check().message(), HasSubstr("96 dimensions in keys of 80"));
  layout.v_dim = 0;
  EXPECT_THAT(layout.Check().message(), HasSubstr("none may be 0"));
}

}  // namespace
}  // namespace troupe
