#include "runtime/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;

class ModelFilesTest : public testing::Test {
 protected:
  std::vector<ModelFile> Look() const { return LookAtModelFiles(model_, options_); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ModelFile& file : Look()) {
      names.push_back(std::filesystem::path(file.path).filename().string());
    }
    return names;
  }

  const TempFolder folder_;
  std::string model_ = folder_.Write("m.gguf", "weights");
  OffloadOptions options_;
};

TEST_F(ModelFilesTest, AreTheModelAndWhatLiesBesideIt) {
  EXPECT_THAT(Names(), ElementsAre("m.gguf", "m.experts", "m.profile.json"));
  options_.lossiness = LossLimit{0.01};
  EXPECT_THAT(Names(), ElementsAre("m.gguf", "m.experts", "m.profile.json", "m.buddies.json",
                                   "m.quality.json"));
}

TEST_F(ModelFilesTest, TablesOfScoresCountWhereTheyAreRead) {
  options_.predictor = "scores";
  EXPECT_THAT(Names(), ElementsAre("m.gguf", "m.experts", "m.profile.json", "m.scores"));
  options_.score_tables = "none";
  EXPECT_THAT(Names(), ElementsAre("m.gguf", "m.experts", "m.profile.json"));
}

TEST_F(ModelFilesTest, AnOptionNamesAnotherOrNone) {
  options_.container = "none";
  options_.profile = folder_.PathOf("other.json");
  EXPECT_THAT(Names(), ElementsAre("m.gguf", "other.json"));
}

TEST_F(ModelFilesTest, OfASplitModelAllPartsCountWhicheverIsNamed) {
  model_ = folder_.PathOf("s-00002-of-00003.gguf");
  options_.container = options_.profile = "none";
  EXPECT_THAT(Names(), ElementsAre("s-00001-of-00003.gguf", "s-00002-of-00003.gguf",
                                   "s-00003-of-00003.gguf"));
}

TEST_F(ModelFilesTest, WhateverHappensToAFileIsSeen) {
  const std::vector<ModelFile> first = Look();
  EXPECT_EQ(Look(), first);
  folder_.Write("m.experts", "packed");
  const std::vector<ModelFile> added = Look();
  EXPECT_NE(added, first);
  folder_.Write("m.experts", "packed anew");
  EXPECT_NE(Look(), added);
  std::filesystem::remove(folder_.PathOf("m.experts"));
  EXPECT_EQ(Look(), first);
  folder_.Write("next", "weights");
  std::filesystem::rename(folder_.PathOf("next"), model_);  // of the same size
  EXPECT_NE(Look(), first);
}

}  // namespace
}  // namespace troupe
