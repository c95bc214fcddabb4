#include "runtime/buddy_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "io/text_file.h"
#include "store/model_fingerprint.h"
#include "testing/edited_text.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::vector<double> Percentiles(double first, double rest) {
  std::vector<double> entropy(100 / BuddyProfile::kPercentStep + 1, rest);
  entropy[0] = first;
  return entropy;
}

BuddyProfile ExampleBuddies() {
  BuddyProfile profile{
      .fingerprint = "00ff",
      .text = "book.txt",
      .tokens = 7,
      .top_k = 2,
      .warm_up = {.tokens = 3, .least = 0.5},
      .options = {.coverage = 0.9, .most = 4, .smoothing = 0.5, .weighted = true},
      .buddies = {.grid = {.layers = 2, .experts = 3}, .lists = std::vector<std::vector<Buddy>>(6)},
      .layers = {{.layer = 1, .activations = {6.5, 3, 0}, .entropy = Percentiles(0.125, 0.75)}}};
  profile.buddies.lists[3] = {{1, 0.75f}, {2, 0.25f}};
  profile.buddies.lists[4] = {{0, 1.0f / 3}};
  return profile;
}

class BuddyProfileTest : public testing::Test {
 protected:
  std::string Saved(const BuddyProfile& profile, const std::string& name = "m.buddies.json") {
    const std::string path = folder_.path() / name;
    EXPECT_TRUE(SaveBuddies(profile, path).ok());
    return path;
  }

  TempFolder folder_;
};

TEST_F(BuddyProfileTest, ReadsBackWhatItWrote) {
  const auto read = LoadBuddies(Saved(ExampleBuddies()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, ExampleBuddies());
}

TEST_F(BuddyProfileTest, LiesBesideTheModelUnderItsName) {
  EXPECT_EQ(BuddiesPathFor("a/m.gguf"), "a/m.buddies.json");
  EXPECT_EQ(BuddiesPathFor("m-00001-of-00002.gguf"), "m.buddies.json");
}

TEST_F(BuddyProfileTest, WhatIsNoSuchFileOrCannotBeIsRefusedWithItsPlace) {
  const std::string good = ReadWholeText(Saved(ExampleBuddies()), 1_MiB).value();
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto read = LoadBuddies(folder_.Write("bad", Edited(good, from, to)));
    return read.ok() ? std::string("accepted") : read.status().message();
  };
  EXPECT_EQ(error("\"tokens\":7", "\"tokens\": 7"), "accepted");
  EXPECT_THAT(error("troupe buddies", "troupe model profile"),
              HasSubstr("bad: not a file of troupe buddies"));
  EXPECT_THAT(error("\"version\":1", "\"version\":2"), HasSubstr("version: 2, expected 1"));
  EXPECT_THAT(error("\"tokens\":7", "\"tokens\":0"), HasSubstr("tokens: 0"));
  EXPECT_THAT(error("\"layer\":1", "\"layer\":2"), HasSubstr("by_layer[0].layer: 2"));
  EXPECT_THAT(error("[6.5,", "[7.5,"), HasSubstr("activations[0]: 7.5, expected a number, 0 to 7"));
  EXPECT_THAT(error("[6.5,", "["), HasSubstr("activations: [3.0,0.0], expected 3 numbers"));
  EXPECT_THAT(error("[0.125,", "[0.875,"), HasSubstr("percentiles that do not fall"));
  EXPECT_THAT(error("[0.125,", "[-0.125,"), HasSubstr("entropy[0]: -0.125"));
  EXPECT_THAT(error("[1,0.75]", "[1,1.5]"), HasSubstr("buddies[0][0][1]: 1.5"));
  EXPECT_THAT(error("[1,0.75]", "[1,0.8]"), HasSubstr("sum is at most 1"));
  EXPECT_THAT(error("[1,0.75]", "[1]"), HasSubstr("an expert and its share"));
  EXPECT_THAT(error("[1,0.75]", "[0,0.75]"), HasSubstr("expert 0, another of the layer's 3"));
  EXPECT_THAT(error("[1,0.75]", "[2,0.75]"), HasSubstr("each once"));
  EXPECT_THAT(error("[1,0.75]", "[1,0.125]"), HasSubstr("share 0.25, above 0 and at most 0.125"));
  EXPECT_THAT(error("[6.5,3.0,", "[6.5,0.0,"), HasSubstr("nobody chose the expert"));
  EXPECT_THAT(error("\"most\":4", "\"most\":1"), HasSubstr("a list of 1 buddies at most"));
  EXPECT_THAT(error("\"weighted\":true", "\"weighted\":1"), HasSubstr("true or false"));
  EXPECT_THAT(error("\"experts\":3", "\"experts\":65536"), HasSubstr("expected 65536 numbers"));
  for (const std::size_t length : {std::size_t{0}, good.size() / 2}) {
    EXPECT_FALSE(LoadBuddies(folder_.Write("cut", good.substr(0, length))).ok());
  }
}

// The lists of all layers take memory by what the file says, those of layers that it lacks, too.
TEST_F(BuddyProfileTest, RefusesToMakeRoomForMoreListsThanAnyModelHas) {
  std::string text = ReadWholeText(Saved(ExampleBuddies()), 1_MiB).value();
  text = Edited(text, "\"layers\":2", "\"layers\":65536");
  EXPECT_TRUE(LoadBuddies(folder_.Write("many", text)).ok());
  text = Edited(text, "\"experts\":3", "\"experts\":17");
  EXPECT_THAT(LoadBuddies(folder_.Write("more", text)).status().message(),
              EndsWith("more: experts: 17, expected with 65536 layers at most 16"));
}

TEST_F(BuddyProfileTest, AChainWithBuddiesGetsThemFromTheFileBesideTheModel) {
  const std::string path = folder_.path() / "m.gguf";
  ASSERT_TRUE(Synthesize(*FindShape("tiny-qwen2moe"), SynthOptions(), path).ok());
  const GgufModel model = GgufModel::Open(path).value();
  const ExpertGrid grid{.layers = 2, .experts = 3};
  const auto load = [&] { return LoadMaterial("smoe+buddies:tau=layers", model, grid); };

  // Nothing is asked of a file that no link needs.
  const auto none = LoadMaterial("smoe:alpha=0.3+drop", model, grid);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->buddies, nullptr);

  EXPECT_THAT(load().status().message(), HasSubstr("m.buddies.json: no such file"));
  EXPECT_THAT(load().status().message(), HasSubstr("`troupe calibrate " + path));

  BuddyProfile profile = ExampleBuddies();
  Saved(profile);
  EXPECT_THAT(load().status().message(), HasSubstr("made for another model"));

  profile.fingerprint = ToString(FingerprintModel(model).value());
  Saved(profile);
  const auto found = load();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*found->buddies, profile.buddies);
  EXPECT_EQ(found->tau_by_layer, (std::vector<double>{1, 0.75}));

  EXPECT_THAT(LoadMaterial("buddies", model, {.layers = 2, .experts = 4}).status().message(),
              HasSubstr("2 layers of 3 experts, 2 of 4 expected"));
  const std::string elsewhere = Saved(profile, "other");
  EXPECT_TRUE(LoadMaterial("buddies", model, grid, elsewhere).ok());
}

}  // namespace
}  // namespace troupe
