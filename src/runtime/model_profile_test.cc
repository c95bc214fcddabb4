#include "runtime/model_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/text_file.h"
#include "testing/edited_text.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

ModelProfile ExampleProfile() {
  ModelProfile profile{
      .fingerprint = "00ff", .text = "book.txt", .tokens = 7, .layers = 2, .experts = 3};
  ProfiledLayer layer{.layer = 1, .plain = {}, .corrected = {}};
  layer.plain[1] = {.tokens = 7, .similarity = 0.9, .expected = 1.0 / 3, .guessed = 0.75};
  layer.corrected[0] = {.tokens = 6, .similarity = 0, .expected = 0.8, .guessed = 1};
  profile.forecasts = {layer};
  profile.shallow = {{.share = 0.25,
                      .costs = {{.layers = 0, .misses = 3, .uncovered = 2},
                                {.layers = 1, .misses = 3, .uncovered = 1}}},
                     {.share = 0.75, .costs = {{.layers = 0, .misses = 1, .uncovered = 0.5}}}};
  profile.learned = {{.layer = 1,
                      .ahead = 2,
                      .table = {0.1f, -2, 3e-20f, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                      .offset = {1.0f / 3, 0, -0.0f}}};
  profile.paths = {{.layer = 1, .follows = {0, 1, 2, 3, 0, 5, 6, 7, 1 << 20}}};
  return profile;
}

TEST(ModelProfileTest, ReadsBackWhatItWrote) {
  TempFolder folder;
  const std::string path = folder.path() / "m.profile.json";
  ASSERT_TRUE(SaveProfile(ExampleProfile(), path).ok());
  const auto read = LoadProfile(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, ExampleProfile());
}

TEST(ModelProfileTest, TheShareMeasuredThatIsNearestDecides) {
  EXPECT_EQ(ExampleProfile().ShallowLayersFor(0.1), 1u);
  EXPECT_EQ(ExampleProfile().ShallowLayersFor(0.49), 1u);
  EXPECT_EQ(ExampleProfile().ShallowLayersFor(0.51), 0u);
  EXPECT_EQ(ModelProfile().ShallowLayersFor(0.5), 0u);
}

TEST(ModelProfileTest, LiesBesideTheModelUnderItsName) {
  EXPECT_EQ(ProfilePathFor("a/m.gguf"), "a/m.profile.json");
  EXPECT_EQ(ProfilePathFor("m-00001-of-00002.gguf"), "m.profile.json");
}

TEST(ModelProfileTest, WhatIsNoProfileOrCannotBeIsRefusedWithItsPlace) {
  TempFolder folder;
  const std::string path = folder.path() / "m.profile.json";
  ASSERT_TRUE(SaveProfile(ExampleProfile(), path).ok());
  const std::string good = ReadWholeText(path, 1_MiB).value();
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto read = LoadProfile(folder.Write("bad", Edited(good, from, to)));
    return read.ok() ? std::string("accepted") : read.status().message();
  };
  EXPECT_THAT(error("troupe model profile", "troupe cost model"), HasSubstr("not a troupe model"));
  EXPECT_THAT(error("\"version\":2", "\"version\":1"), HasSubstr("version: 1, expected 2"));
  EXPECT_THAT(error("\"ahead\":2", "\"ahead\":9"), HasSubstr("learned[0].ahead: 9"));
  EXPECT_THAT(error("\"layer\":1", "\"layer\":2"), HasSubstr("forecasts[0].layer: 2"));
  EXPECT_THAT(error("\"guessed\":0.75", "\"guessed\":1.5"), HasSubstr("1.5, expected a share"));
  EXPECT_THAT(error("\"offset\":[", "\"offset\":[1,"), HasSubstr("expected 3 numbers"));
  EXPECT_THAT(error("\"offset\":[", "\"offset\":[null,"), HasSubstr("offset"));
  EXPECT_THAT(error("\"follows\":[0.0", "\"follows\":[-1.0"), HasSubstr("expected counts"));
  EXPECT_THAT(error("\"follows\":[0.0,", "\"follows\":["), HasSubstr("expected 9 numbers"));
  for (const std::size_t length : {std::size_t{0}, good.size() / 2}) {
    EXPECT_FALSE(LoadProfile(folder.Write("cut", good.substr(0, length))).ok());
  }
}

}  // namespace
}  // namespace troupe
