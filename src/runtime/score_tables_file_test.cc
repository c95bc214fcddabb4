#include "runtime/score_tables_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "expert/forecast/miss_chance.h"
#include "expert/forecast/score_map.h"
#include "io/text_file.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr ExpertGrid kKeptGrid{.layers = 4, .experts = 3};
const std::string kFingerprint(32, 'a');

class ScoreTablesFileTest : public testing::Test {
 protected:
  static ScoreTables SomeTables() {
    ScoreTables tables{
        .grid = kKeptGrid,
        .experts_per_token = 2,
        .layers = {1, 2, 3},
        .tokens = 1234,
        .weights = std::vector<float>(ScoreMap::WeightCount(kKeptGrid), -0.5f),
        .moments = std::vector<float>(ScoreMap::MomentCount(kKeptGrid), 0.01f),
        .fits = std::vector<float>(MissChance::NumberCount(ScoreMap::ReachFor(kKeptGrid)), 2),
        .shares = std::vector<float>(kKeptGrid.Count(), 0.25f)};
    tables.weights.front() = 1.25f;
    tables.shares.back() = 0.75f;
    return tables;
  }

  ScoreTablesOf Wanted() const {
    return {.fingerprint = kFingerprint,
            .grid = kKeptGrid,
            .experts_per_token = 2,
            .layers = {1, 2, 3}};
  }

  Result<ScoreTables> Load() const { return LoadScoreTables(path_, Wanted()); }
  std::string Refusal() const { return Load().status().message(); }

  const TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.scores");
};

TEST_F(ScoreTablesFileTest, WhatIsReadIsWhatWasWritten) {
  EXPECT_EQ(ScoresPathFor("a/m.gguf"), "a/m.scores");
  EXPECT_EQ(ScoresPathFor("m-00001-of-00002.gguf"), "m.scores");
  ASSERT_TRUE(SaveScoreTables(SomeTables(), kFingerprint, path_).ok());
  const Result<ScoreTables> read = Load();
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, SomeTables());
  ScoreTablesOf any = Wanted();
  any.fingerprint.clear();
  EXPECT_TRUE(LoadScoreTables(path_, any).ok());
}

TEST_F(ScoreTablesFileTest, TablesOfAnotherModelAreRefused) {
  ASSERT_TRUE(SaveScoreTables(SomeTables(), std::string(32, 'b'), path_).ok());
  EXPECT_EQ(Load().status().code(), Code::kAlreadyExists);
  EXPECT_THAT(Refusal(), HasSubstr("m.scores: made for another model; `troupe calibrate`"));
  ScoreTablesOf other = Wanted();
  other.fingerprint.clear();
  other.experts_per_token = 1;
  EXPECT_FALSE(LoadScoreTables(path_, other).ok());
}

TEST_F(ScoreTablesFileTest, EveryByteThatIsAnotherIsFound) {
  ASSERT_TRUE(SaveScoreTables(SomeTables(), kFingerprint, path_).ok());
  const std::string whole = ReadWholeText(path_, 1_MiB).value();
  for (std::size_t at = 0; at < whole.size(); at += at < 96 ? 1 : 101) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    folder_.Write("m.scores", damaged);
    EXPECT_FALSE(Load().ok()) << at;
    EXPECT_THAT(Refusal(), HasSubstr("m.scores")) << at;
  }
}

TEST_F(ScoreTablesFileTest, WhatIsNoWholeFileIsRefused) {
  EXPECT_FALSE(Load().ok());
  ASSERT_TRUE(SaveScoreTables(SomeTables(), kFingerprint, path_).ok());
  const std::string whole = ReadWholeText(path_, 1_MiB).value();
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, whole.size() - 1}) {
    folder_.Write("m.scores", whole.substr(0, size));
    EXPECT_EQ(Load().status().code(), Code::kDataLoss) << size;
  }
  folder_.Write("m.scores", whole + "x");
  EXPECT_THAT(Refusal(), HasSubstr("expected"));
}

TEST_F(ScoreTablesFileTest, WhatIsNoNumberIsRefused) {
  ScoreTables tables = SomeTables();
  tables.weights[7] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(SaveScoreTables(tables, kFingerprint, path_).ok());
  EXPECT_THAT(Refusal(), HasSubstr("numbers that no calibration leaves"));
  tables = SomeTables();
  tables.moments[0] = 0;
  ASSERT_TRUE(SaveScoreTables(tables, kFingerprint, path_).ok());
  EXPECT_FALSE(Load().ok());
  tables = SomeTables();
  tables.fits[6] = -1;  // a sum of squares
  ASSERT_TRUE(SaveScoreTables(tables, kFingerprint, path_).ok());
  EXPECT_FALSE(Load().ok());
  tables = SomeTables();
  tables.tokens = std::numeric_limits<std::uint64_t>::max();  // a run would count on from there
  ASSERT_TRUE(SaveScoreTables(tables, kFingerprint, path_).ok());
  EXPECT_THAT(Refusal(), HasSubstr("numbers that no calibration leaves"));
}

// A file may be as long as a header says without taking any room on its disk.
TEST_F(ScoreTablesFileTest, TablesThatNoMemoryHoldsAreRefusedBeforeAnyIsTaken) {
  ASSERT_TRUE(SaveScoreTables(SomeTables(), kFingerprint, path_).ok());
  std::string header = ReadWholeText(path_, 1_MiB).value().substr(0, 88);
  const ExpertGrid grid{.layers = 1, .experts = 20'000};
  const std::uint32_t numbers[] = {grid.layers, grid.experts, 2, 1, ScoreMap::ReachFor(grid)};
  std::memcpy(header.data() + 12, numbers, sizeof numbers);
  folder_.Write("m.scores", header);
  const std::size_t floats = ScoreMap::WeightCount(grid) + ScoreMap::MomentCount(grid) +
                             MissChance::NumberCount(ScoreMap::ReachFor(grid)) + grid.Count();
  std::error_code refused;
  std::filesystem::resize_file(path_, 88 + 4 * (1 + floats), refused);
  if (refused) GTEST_SKIP() << "no files of " << 4 * floats << " bytes here";
  const Result<ScoreTables> read = LoadScoreTables(
      path_, {.fingerprint = kFingerprint, .grid = grid, .experts_per_token = 2, .layers = {0}});
  EXPECT_EQ(read.status().code(), Code::kResourceExhausted) << read.status().message();
}

}  // namespace
}  // namespace troupe
