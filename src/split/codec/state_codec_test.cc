#include "split/codec/state_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "split/codec/random_states_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Basis = std::shared_ptr<CutBasis>;

std::vector<std::byte> Encoded(const Basis& basis, StateCode code, std::span<const float> rows) {
  return StateEncoder::Create(basis, code)->Encode(5, rows);
}

std::vector<float> ThereAndBack(const Basis& basis, StateCode code, std::span<const float> rows) {
  auto decoder = StateDecoder::Create(basis, code);
  auto states = decoder->Decode(Encoded(basis, code, rows));
  EXPECT_TRUE(states.ok()) << states.status().message();
  EXPECT_EQ(states->first, 5u);
  return states->rows;
}

bool IsKept(const CutBasis& basis, std::size_t channel) {
  return std::ranges::count(basis.kept, channel) > 0;
}

// Slow and in double: what a code of floats gives of one row, and how much of the row's numbers a
// code of few bits may change.
struct Reference {
  std::vector<double> row;
  double size = 0;  // root mean square of the channels that are not kept
  std::vector<double> numbers;
};
Reference SlowReference(const CutBasis& basis, std::uint32_t rank, std::span<const float> row) {
  Reference found;
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (!IsKept(basis, c)) found.size += double{row[c]} * row[c];
  }
  found.size = std::sqrt(found.size / static_cast<double>(basis.width - basis.kept.size()));
  std::vector<double> sized(row.size());
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (!IsKept(basis, c)) sized[c] = row[c] / found.size - basis.mean[c];
  }
  found.row.assign(basis.mean.begin(), basis.mean.end());
  for (std::uint32_t i = 0; i < rank; ++i) {
    double number = 0;
    for (std::size_t c = 0; c < row.size(); ++c) number += basis.Finder(i)[c] * sized[c];
    for (std::size_t c = 0; c < row.size(); ++c) found.row[c] += number * basis.Direction(i)[c];
    found.numbers.push_back(number);
  }
  for (std::size_t c = 0; c < row.size(); ++c) {
    found.row[c] = IsKept(basis, c) ? double{row[c]} : found.row[c] * found.size;
  }
  return found;
}

TEST(StateCodec, ByAnEntropyCoderTheSameRowsComeInNoMoreBytes) {
  Rng rng(TestSeed());
  int shorter = 0;
  for (int round = 0; round < 60; ++round) {
    const auto width = static_cast<std::uint32_t>(20 + rng.Below(200));
    const Basis basis = RandomBasis(width, 16, rng, {3, 11});
    StateCode code{.rank = static_cast<std::uint32_t>(round % 3 == 0 ? 1 + rng.Below(16) : 0),
                   .form = round % 2 == 0 ? StateForm::kInt8 : StateForm::kInt4};
    const std::vector<float> rows = RandomRows(1 + rng.Below(80), *basis, rng);
    const std::vector<std::byte> plain = Encoded(basis, code, rows);
    const std::vector<float> expected = ThereAndBack(basis, code, rows);
    code.rans = true;
    const std::vector<std::byte> coded = Encoded(basis, code, rows);
    EXPECT_LE(coded.size(), plain.size());
    shorter += coded.size() < plain.size() ? 1 : 0;
    EXPECT_EQ(ThereAndBack(basis, code, rows), expected) << ToString(code);
    // Without it as well, where it is expected; but not the other way round.
    EXPECT_TRUE(StateDecoder::Create(basis, code)->Decode(plain).ok());
    if (coded.size() < plain.size()) {
      EXPECT_THAT(StateDecoder::Create(basis, code.plain())->Decode(coded).status().message(),
                  HasSubstr("rANS, "));
    }
  }
  EXPECT_GT(shorter, 20);
}

TEST(StateCodec, AnExactCodeGivesBackEveryBit) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const auto width = static_cast<std::uint32_t>(1 + rng.Below(100));
    const Basis basis = RandomBasis(width, 0, rng);
    std::vector<float> rows(width * (1 + rng.Below(5)));
    for (float& x : rows) {
      do {
        x = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()));
      } while (!std::isfinite(x));
    }
    rows.front() = -std::numeric_limits<float>::denorm_min();
    const std::vector<float> back = ThereAndBack(basis, {}, rows);
    ASSERT_EQ(back.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(rows[i]));
    }
  }
}

TEST(StateCodec, RefusesExactRowsThatAreNoNumbers) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(8, 0, rng);
  auto decoder = StateDecoder::Create(basis, {});
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> rows(24, 1.0f);
    rows[17] = bad;
    EXPECT_THAT(decoder->Decode(Encoded(basis, {}, rows)).status().message(),
                HasSubstr("row 2 holds a number that is not finite"));
  }
}

TEST(StateCodec, GivesWhatTheSlowReferenceGives) {
  Rng rng(TestSeed());
  for (const std::uint32_t width : {7u, 33u, 128u}) {
    const Basis basis = RandomBasis(width, width - 2, rng, {1, 4});
    const std::vector<float> rows = RandomRows(20, *basis, rng);
    for (const std::uint32_t rank : {1u, width / 2, width - 2}) {
      const std::vector<float> back = ThereAndBack(basis, {.rank = rank}, rows);
      for (std::size_t r = 0; r < 20; ++r) {
        const Reference slow =
            SlowReference(*basis, rank, std::span(rows).subspan(r * width, width));
        // Each of the two sums has that many products, of rows of length 2 at most with numbers of
        // at most sqrt(width) times the size: the bound of a sum's rounding, n * eps * sum |a b|.
        const double bound = 8 * width * 0x1p-24 * std::sqrt(width) * slow.size;
        for (std::size_t c = 0; c < width; ++c) {
          ASSERT_NEAR(back[r * width + c], slow.row[c], bound) << "width " << width;
        }
      }
    }
  }
}

TEST(StateCodec, FewBitsCostNoMoreThanTheirNumbersAreOff) {
  Rng rng(TestSeed());
  constexpr std::uint32_t kWidth = 96;
  const Basis basis = RandomBasis(kWidth, 80, rng, {0, 95});
  const std::vector<float> rows = RandomRows(20, *basis, rng);
  for (const StateForm form : {StateForm::kInt8, StateForm::kInt4}) {
    const double most_code = form == StateForm::kInt8 ? 127 : 7;
    const std::vector<float> back = ThereAndBack(basis, {.rank = 80, .form = form}, rows);
    for (std::size_t r = 0; r < 20; ++r) {
      const Reference slow = SlowReference(*basis, 80, std::span(rows).subspan(r * kWidth, kWidth));
      // Directions are at right angles: what numbers are off adds up in squares.
      double most_squared = 0, off_squared = 0;
      for (std::size_t i = 0; i < 80; i += 32) {
        double most = 0;
        for (std::size_t j = i; j < std::min<std::size_t>(80, i + 32); ++j) {
          most = std::max(most, std::abs(slow.numbers[j]));
        }
        const double off = most * (0.502 / most_code + 0x1p-8 + 1e-5);  // code_groups.h
        most_squared += off * off * static_cast<double>(std::min<std::size_t>(32, 80 - i));
      }
      for (std::size_t c = 0; c < kWidth; ++c) {
        off_squared += std::pow(back[r * kWidth + c] - slow.row[c], 2);
      }
      EXPECT_LE(std::sqrt(off_squared), std::sqrt(most_squared) * slow.size);
      EXPECT_GT(off_squared, 0);
    }
  }
}

TEST(StateCodec, ManyRowsGiveTheBytesOfEachAlone) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(40, 30, rng, {2});
  const std::vector<float> rows = RandomRows(37, *basis, rng);
  for (const StateCode code :
       {StateCode{.rank = 30}, StateCode{.rank = 9, .form = StateForm::kInt4},
        StateCode{.rank = 0, .form = StateForm::kInt8}}) {
    const std::vector<std::byte> all = Encoded(basis, code, rows);
    const std::size_t bytes = StateRowBytes(code, 40, 1);
    ASSERT_EQ(all.size(), kStateFrameBytes + 37 * bytes);
    for (std::size_t r = 0; r < 37; ++r) {
      const auto one = Encoded(basis, code, std::span(rows).subspan(r * 40, 40));
      const auto row = RowsOf(std::span(all)).subspan(r * bytes, bytes);
      EXPECT_TRUE(std::ranges::equal(RowsOf(std::span(one)), row)) << ToString(code);
    }
  }
}

TEST(StateCodec, MassiveChannelsCrossAsTheyAre) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(64, 20, rng, {7, 50});
  const std::vector<float> rows = RandomRows(4, *basis, rng);
  for (const std::uint32_t rank : {0u, 20u}) {
    for (const StateForm form : {StateForm::kInt8, StateForm::kInt4}) {
      const std::vector<float> back = ThereAndBack(basis, {.rank = rank, .form = form}, rows);
      for (std::size_t r = 0; r < 4; ++r) {
        for (const std::uint32_t c : basis->kept) EXPECT_EQ(back[r * 64 + c], rows[r * 64 + c]);
        EXPECT_NE(back[r * 64 + 8], rows[r * 64 + 8]);
      }
    }
  }
}

TEST(StateCodec, RowsOfZerosStayZeros) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(16, 8, rng, {3});
  const std::vector<float> zeros(32);
  EXPECT_EQ(ThereAndBack(basis, {.rank = 8}, zeros), zeros);
  EXPECT_EQ(ThereAndBack(basis, {.rank = 8, .form = StateForm::kInt4}, zeros), zeros);
  EXPECT_EQ(ThereAndBack(basis, {.form = StateForm::kInt8}, zeros), zeros);
}

TEST(StateCodec, RefusesARankLargerThanTheWidth) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(16, 8, rng);
  for (const std::uint32_t rank : {9u, 17u}) {
    EXPECT_EQ(StateEncoder::Create(basis, {.rank = rank}).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(StateDecoder::Create(basis, {.rank = rank}).status().code(), Code::kInvalidArgument);
  }
  EXPECT_THAT(StateEncoder::Create(basis, {.rank = 17}).status().message(),
              HasSubstr("larger than the 16 channels"));
}

TEST(StateCodec, RefusesStatesOfAnotherCutCodeOrBasis) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(16, 8, rng), other = RandomBasis(16, 8, rng);
  const auto later = std::make_shared<CutBasis>(*basis);
  later->layer = 4;
  const StateCode code{.rank = 4, .form = StateForm::kInt8};
  const std::vector<std::byte> message = Encoded(basis, code, RandomRows(2, *basis, rng));
  const auto refusal = [&message](const Basis& of, StateCode as) {
    const auto states = StateDecoder::Create(of, as)->Decode(message);
    EXPECT_EQ(states.status().code(), Code::kInvalidArgument);
    return states.status().message();
  };
  EXPECT_THAT(refusal(later, code), HasSubstr("before layer 3 of width 16, layer 4"));
  EXPECT_THAT(refusal(basis, {.rank = 5, .form = StateForm::kInt8}), HasSubstr("rank 5"));
  EXPECT_THAT(refusal(other, code), HasSubstr("another basis"));
  EXPECT_TRUE(StateDecoder::Create(basis, code)->Decode(message).ok());
}

TEST(StateCodec, RefusesNumbersThatAreNotFinite) {
  Rng rng(TestSeed());
  const Basis basis = RandomBasis(16, 8, rng, {3});
  for (const StateCode code : {StateCode{.rank = 8}, StateCode{.rank = 8, .form = StateForm::kInt8},
                               StateCode{.form = StateForm::kInt4}}) {
    for (const std::size_t channel : {3, 4}) {
      std::vector<float> rows = RandomRows(3, *basis, rng);
      rows[16 + channel] = std::numeric_limits<float>::infinity();
      const auto states = StateDecoder::Create(basis, code)->Decode(Encoded(basis, code, rows));
      EXPECT_EQ(states.status().code(), Code::kDataLoss);
      EXPECT_THAT(states.status().message(), HasSubstr("row 1"));
    }
  }
}

}  // namespace
}  // namespace troupe
