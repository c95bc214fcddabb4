#include "runtime/logit_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(LogitRows, ThoseOfAPassLieSideBySideInItsOrder) {
  LogitRows rows(4, 2);
  const std::span<float> front = rows.Place(std::vector<SequenceId>{3, 1});
  ASSERT_EQ(front.size(), 4u);
  std::iota(front.begin(), front.end(), 1.0F);
  EXPECT_THAT(rows.Of(3), ElementsAre(1, 2));
  EXPECT_THAT(rows.Of(1), ElementsAre(3, 4));
  EXPECT_THAT(rows.Of(0), ElementsAre(0, 0));
}

TEST(LogitRows, WhoIsNotInAPassKeepsItsLogits) {
  constexpr std::uint32_t kSequences = 9;
  constexpr std::size_t kVocabulary = 3;
  Rng rng(TestSeed());
  LogitRows rows(kSequences, kVocabulary);
  std::vector<float> expected(kSequences);
  for (int pass = 1; pass < 500; ++pass) {
    std::vector<SequenceId> sequences(kSequences);
    std::iota(sequences.begin(), sequences.end(), 0);
    for (std::size_t i = kSequences; i > 1; --i)
      std::swap(sequences[i - 1], sequences[rng.Below(i)]);
    sequences.resize(rng.Below(kSequences + 1));
    const std::span<float> front = rows.Place(sequences);
    ASSERT_EQ(front.size(), sequences.size() * kVocabulary);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      expected[sequences[i]] = static_cast<float>(100 * pass) + static_cast<float>(i);
      std::ranges::fill(front.subspan(i * kVocabulary, kVocabulary), expected[sequences[i]]);
    }
    for (SequenceId id = 0; id < kSequences; ++id) ASSERT_THAT(rows.Of(id), Each(expected[id]));
  }
}

TEST(LogitRows, TakesWhatItSaysAndTakesItAtOnce) {
  EXPECT_EQ(LogitRows::BytesFor(16, 1000), Bytes(64'000));
  LogitRows rows(3, 5);
  const float* const memory = rows.Place(std::vector<SequenceId>{2, 0, 1}).data();
  EXPECT_EQ(rows.Place(std::vector<SequenceId>{1, 2}).data(), memory);
  EXPECT_EQ(rows.Of(0).data(), memory + 10);
}

}  // namespace
}  // namespace troupe
