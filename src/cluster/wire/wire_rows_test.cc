#include "cluster/wire/wire_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// A row in 8 bits as the scalar reference gives it.
struct QuantizedRow {
  explicit QuantizedRow(const std::vector<float>& x)
      : storage(ActivationBytes(1, x.size())),
        view(MakeActivations(x.data(), x.size(), 1, x.size(), storage)) {
    QuantizeActivationsReference(view, 0);
  }
  std::span<const ActivationGroup> groups() const {
    return {view.Groups(0), view.cols / kGroupCols};
  }

  std::vector<std::byte> storage;
  Activations view;
};

// Over the wire, at an odd address.
std::vector<ActivationGroup> SentAndRead(std::span<const ActivationGroup> groups) {
  std::vector<std::byte> wire(1 + groups.size() * kWireGroupBytes);
  PackRow(groups, std::span(wire).subspan(1));
  std::vector<ActivationGroup> read(groups.size());
  std::memset(read.data(), 0x5a, read.size() * sizeof(ActivationGroup));
  UnpackRow(std::span(wire).subspan(1), read);
  return read;
}

void ExpectSameBits(std::span<const ActivationGroup> a, std::span<const ActivationGroup> b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(ActivationGroup)), 0) << "group " << i;
  }
}

TEST(PackRow, GivesBackEveryBitOfRandomRows) {
  Rng rng(TestSeed());
  for (std::size_t i = 0; i < TestCases(300); ++i) {
    std::vector<float> x(kGroupCols * (1 + rng.Below(40)));
    const int exponent = static_cast<int>(rng.Below(180)) - 90;
    for (float& v : x) v = std::ldexp(static_cast<float>(rng.Normal()), exponent);
    const QuantizedRow row(x);
    ExpectSameBits(SentAndRead(row.groups()), row.groups());
  }
}

TEST(PackRow, GivesBackZerosAndNaNs) {
  for (const float odd : {0.0f, -0.0f, 1e-31f, std::nanf(""), -std::nanf(""),
                          std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(3 * kGroupCols, 1.0f);
    for (std::size_t i = kGroupCols; i < 2 * kGroupCols; ++i) x[i] = odd;
    const QuantizedRow row(x);
    EXPECT_EQ(row.groups()[1].sum, 0);
    ExpectSameBits(SentAndRead(row.groups()), row.groups());
  }
}

TEST(PackRow, AddsUpTheLargestCodes) {
  std::vector<float> x(kGroupCols, -1.0f);
  for (std::size_t i = 16; i < kGroupCols; ++i) x[i] = 1.0f;
  const QuantizedRow row(x);
  EXPECT_EQ(SentAndRead(row.groups())[0].half_sum[0], -127 * 16);
  ExpectSameBits(SentAndRead(row.groups()), row.groups());
}

TEST(PackRow, TakesThreeQuartersOfTheMemory) {
  EXPECT_EQ(kWireGroupBytes * 4, sizeof(ActivationGroup) * 3);
  EXPECT_EQ(WireRowBytes(RowForm::kInt8, 2048), 2304u);
  EXPECT_EQ(WireRowBytes(RowForm::kFloat, 2048), 8192u);
  EXPECT_EQ(WireRowBytes(RowForm::kBf16, 2048), 4096u);
}

TEST(WireRows, DifferByFormWidthAndBytes) {
  const std::vector<std::byte> bytes(8), others(8, std::byte{1});
  const WireRows rows{RowForm::kFloat, 2, 1, bytes};
  const std::vector<std::byte> same(8);
  EXPECT_EQ(rows, (WireRows{RowForm::kFloat, 2, 1, same}));
  EXPECT_NE(rows, (WireRows{RowForm::kFloat, 1, 2, bytes}));
  EXPECT_NE(rows, (WireRows{RowForm::kFloat, 2, 1, others}));
}

TEST(WireRowsDeathTest, CodesAreNoFloats) {
  const std::vector<std::byte> bytes(36);
  const WireRows rows{RowForm::kInt8, 32, 1, bytes};
  EXPECT_DEATH(rows.Floats(0), "broken invariant");
}

}  // namespace
}  // namespace troupe
