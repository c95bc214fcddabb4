#include "model/forecast_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

struct Part {
  Phase phase;
  std::size_t rows;
};

std::vector<std::uint32_t> Choose(const std::vector<Part>& parts, std::size_t room) {
  const std::vector<std::int32_t> tokens(1000);
  std::vector<RowGroup> batch;
  for (const Part& part : parts) {
    batch.push_back({.tokens = std::span(tokens).first(part.rows), .phase = part.phase});
  }
  std::vector<std::uint32_t> rows(room);
  rows.resize(ChooseForecastRows(batch, 1, rows));
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
  return rows;
}

constexpr Phase kPrompt = Phase::kPrompt, kDecode = Phase::kDecode;

TEST(ForecastRows, AreAllWhereThereIsRoom) {
  EXPECT_THAT(Choose({{kDecode, 1}}, 4), ElementsAre(0));
  EXPECT_THAT(Choose({{kPrompt, 2}, {kDecode, 1}, {kPrompt, 1}}, 4), ElementsAre(0, 1, 2, 3));
}

TEST(ForecastRows, AreSpreadOverALongPromptWithItsLastRow) {
  EXPECT_THAT(Choose({{kPrompt, 100}}, 4), ElementsAre(24, 49, 74, 99));
  EXPECT_THAT(Choose({{kPrompt, 50}, {kPrompt, 50}}, 4), ElementsAre(24, 49, 74, 99));
}

TEST(ForecastRows, HoldEveryDecodeBesideALongPrompt) {
  const auto rows = Choose({{kPrompt, 100}, {kDecode, 1}, {kPrompt, 100}, {kDecode, 1}}, 6);
  EXPECT_EQ(rows.size(), 6u);
  EXPECT_THAT(rows, IsSupersetOf({100u, 201u}));
  EXPECT_THAT(rows, testing::Contains(200u));  // the last of the prompts
}

TEST(ForecastRows, ManyDecodesLeaveNothingToPrompts) {
  EXPECT_THAT(Choose({{kPrompt, 10}, {kDecode, 6}}, 3), ElementsAre(11, 13, 15));
}

TEST(ForecastRows, WithoutRoomAreNone) { EXPECT_TRUE(Choose({{kDecode, 3}}, 0).empty()); }

}  // namespace
}  // namespace troupe
