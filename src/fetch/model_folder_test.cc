#include "fetch/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fetch/part_file.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() { ::setenv("TROUPE_MODELS", root().c_str(), 1); }
  ~ModelFolderTest() override { ::unsetenv("TROUPE_MODELS"); }

  std::string root() const { return folder_.path().string(); }
  bool IsThere(const std::string& name) const {
    return std::filesystem::exists(folder_.PathOf(name));
  }
  // A model of one file of `bytes`, of which `here` are there.
  void Add(std::string_view name, const std::string& file, std::uint64_t bytes,
           std::uint64_t here) const {
    const ModelName parsed = *ParseModelName(name);
    const std::filesystem::path record = PullRecordPath(root(), parsed);
    std::filesystem::create_directories((record.parent_path() / file).parent_path());
    folder_.Write(std::filesystem::relative(record, root()).string(),
                  PullRecordText({parsed.ToString(), {{file, bytes, ""}}}));
    const auto path = std::filesystem::relative(record.parent_path() / file, root()).string();
    folder_.Write(here == bytes ? path : path + ".part", std::string(here, 'x'));
  }
  std::string Found(std::string_view text) const {
    const Result<std::optional<PulledModel>> found = FindModel(root(), text);
    if (!found.ok()) return found.status().message();
    return *found ? (*found)->record.name : "none";
  }

  TempFolder folder_;
};

TEST_F(ModelFolderTest, ListsModelsWithTheirTypesAndWhetherTheyAreWhole) {
  EXPECT_THAT(ListModels(root()), IsEmpty());
  EXPECT_THAT(ListModels(folder_.PathOf("missing")), IsEmpty());
  Add("qwen3:30b", "30b.gguf", 4, 4);
  Add("hf.co/o/r:Q8_0", "m-Q8_0.gguf", 10, 6);
  folder_.Write("broken.pull.json", "{");
  const std::vector<PulledModel> models = ListModels(root());
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].record.name, "hf.co/o/r:Q8_0");
  EXPECT_EQ(models[0].type(), "Q8_0");
  EXPECT_FALSE(models[0].whole());
  EXPECT_EQ(models[0].here, Bytes(6));
  EXPECT_EQ(models[1].type(), "30b");
  EXPECT_TRUE(models[1].whole());
}

TEST_F(ModelFolderTest, APartOfAllBytesIsNotWholeBeforeItIsChecked) {
  Add("hf.co/o/r:Q8_0", "m-Q8_0.gguf", 10, 6);
  folder_.Write("hf.co/o/r/m-Q8_0.gguf.part", std::string(10, 'x'));
  EXPECT_FALSE(ListModels(root()).front().whole());
}

TEST_F(ModelFolderTest, FindsAModelByAnyClearPartOfItsName) {
  Add("hf.co/owner/Repo-GGUF:Q4_K_M", "m-Q4_K_M.gguf", 4, 4);
  Add("qwen3:30b", "30b.gguf", 4, 4);
  for (const char* text :
       {"hf.co/owner/Repo-GGUF:Q4_K_M", "hf.co/owner/Repo-GGUF", "owner/repo-gguf:q4_k_m",
        "Repo-GGUF:Q4_K_M", "Repo-GGUF", "https://huggingface.co/owner/Repo-GGUF"}) {
    EXPECT_EQ(Found(text), "hf.co/owner/Repo-GGUF:Q4_K_M") << text;
  }
  EXPECT_EQ(Found("qwen3:30b"), "ollama.com/library/qwen3:30b");
  EXPECT_EQ(Found("qwen3"), "ollama.com/library/qwen3:30b");
  for (const char* text : {"GGUF", "po-GGUF", "qwen", "30b", "qwen3:30", "", "/"}) {
    EXPECT_EQ(Found(text), "none") << text;
  }
}

TEST_F(ModelFolderTest, ANameThatMeansSeveralIsNotGuessed) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  Add("hf.co/o/r:Q8_0", "m-Q8_0.gguf", 4, 4);
  EXPECT_EQ(Found("r"), "'r' may be hf.co/o/r:Q4_0 or hf.co/o/r:Q8_0: say which");
  EXPECT_EQ(Found("r:Q8_0"), "hf.co/o/r:Q8_0");
}

TEST_F(ModelFolderTest, TheFirstFileOfAWholeModelIsOpenedByItsName) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  Add("hf.co/o/r:Q8_0", "m-Q8_0.gguf", 4, 3);
  EXPECT_EQ(*ModelPathFor("r:Q4_0"), folder_.PathOf("hf.co/o/r/m-Q4_0.gguf"));
  EXPECT_EQ(*ModelPathFor("other.gguf"), "other.gguf");
  EXPECT_THAT(ModelPathFor("r:Q8_0").status().message(),
              HasSubstr("only 3 B of 4 B are here; `troupe pull hf.co/o/r:Q8_0` goes on"));
}

TEST_F(ModelFolderTest, ANameOfAModelThatIsNotHereIsToldHowToGetIt) {
  for (const auto& [name, pulled] :
       {std::pair("hf.co/o/r-GGUF:Q4_0", "hf.co/o/r-GGUF:Q4_0"),
        std::pair("qwen3:30b", "qwen3:30b"), std::pair("r-GGUF", "hf.co/OWNER/r-GGUF")}) {
    EXPECT_EQ(ModelPathFor(name).status().message(),
              std::string(name) + ": no such file or model here (`troupe list`); `troupe pull " +
                  pulled + "` gets it");
  }
  for (const char* file : {"none.gguf", "none", "folder/none", "/hf.co/o/r"}) {
    EXPECT_EQ(*ModelPathFor(file), file);  // opening it says what is wrong
  }
}

TEST_F(ModelFolderTest, TheBeginningOfAModelsNameIsToldWhatItMayMean) {
  Add("hf.co/o/tiny-GGUF:Q4_0", "m-Q4_0.gguf", 4, 4);
  Add("hf.co/o/tiny-GGUF:Q8_0", "m-Q8_0.gguf", 4, 4);
  EXPECT_EQ(ModelPathFor("tiny").status().message(),
            "tiny: no such file or model; did you mean tiny-GGUF? (troupe list)");
  Add("tinier:7b", "7b.gguf", 4, 4);
  EXPECT_THAT(ModelPathFor("TINI").status().message(), HasSubstr("did you mean tinier?"));
  EXPECT_THAT(ModelPathFor("tin").status().message(), HasSubstr("tinier or tiny-GGUF?"));
  for (const char* file : {"tiny.gguf", "folder/tiny", "small"})
    EXPECT_EQ(*ModelPathFor(file), file);
}

TEST_F(ModelFolderTest, SaysWhatLiesBesideAModelAndSinceWhenItIsHere) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  folder_.Write("hf.co/o/r/m-Q4_0.profile.json", "{}");
  folder_.Write("hf.co/o/r/m-Q4_0.experts", "12345");
  folder_.Write("hf.co/o/r/m-Q8_0.experts", "1");
  const PulledModel model = ListModels(root()).front();
  EXPECT_THAT(FilesBeside(model),
              ElementsAre(FileBeside{"experts", Bytes(5)}, FileBeside{"profile", Bytes(2)}));
  EXPECT_GT(model.got(), 1'600'000'000);
}

TEST_F(ModelFolderTest, AFileOfThatNameComesFirst) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  EXPECT_EQ(*ModelPathFor(folder_.Write("r", "x")), folder_.PathOf("r"));
}

TEST_F(ModelFolderTest, RemovesAModelWithWhatLiesBesideIt) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  Add("hf.co/o/r:Q4_0_L", "m-Q4_0_L.gguf", 4, 2);
  folder_.Write("hf.co/o/r/m-Q4_0.experts", "12345");
  folder_.Write("hf.co/o/r/m-Q4_0.profile.json", "{}");
  const Result<Removal> removal = RemoveModel(root(), **FindModel(root(), "r:Q4_0"));
  ASSERT_TRUE(removal.ok()) << removal.status().message();
  EXPECT_EQ(removal->freed, Bytes(11));
  for (const char* gone : {"m-Q4_0.gguf", "m-Q4_0.experts", "m-Q4_0.profile.json"}) {
    EXPECT_FALSE(IsThere(std::string("hf.co/o/r/") + gone)) << gone;
  }
  EXPECT_EQ(Found("r"), "hf.co/o/r:Q4_0_L");
  ASSERT_TRUE(RemoveModel(root(), **FindModel(root(), "r")).ok());
  EXPECT_FALSE(IsThere("hf.co"));
  EXPECT_TRUE(IsThere(""));
}

TEST_F(ModelFolderTest, KeepsWhatLiesBesideAModelWithALongerName) {
  Add("m:7b", "7b.gguf", 4, 4);
  Add("m:7b.1", "7b.1.gguf", 4, 4);
  folder_.Write("ollama.com/library/m/7b.1.experts", "12345");
  folder_.Write("ollama.com/library/m/7b.experts", "12345");
  ASSERT_TRUE(RemoveModel(root(), **FindModel(root(), "m:7b")).ok());
  EXPECT_FALSE(IsThere("ollama.com/library/m/7b.experts"));
  EXPECT_TRUE(IsThere("ollama.com/library/m/7b.1.experts"));
  EXPECT_TRUE(IsThere("ollama.com/library/m/7b.1.gguf"));
}

TEST_F(ModelFolderTest, KeepsAFileThatAnotherModelNeeds) {
  Add("hf.co/o/r:Q4_0", "m-Q4_0.gguf", 4, 4);
  Add("hf.co/o/r:m-Q4_0.gguf", "m-Q4_0.gguf", 4, 4);
  const Result<Removal> removal = RemoveModel(root(), **FindModel(root(), "r:Q4_0"));
  ASSERT_TRUE(removal.ok());
  EXPECT_EQ(removal->kept.size(), 1u);
  EXPECT_TRUE(IsThere("hf.co/o/r/m-Q4_0.gguf"));
}

TEST_F(ModelFolderTest, DoesNotRemoveWhatIsJustBeingGot) {
  Add("hf.co/o/r:Q8_0", "m-Q8_0.gguf", 10, 6);
  const Result<PartFile> part =
      PartFile::Open(folder_.PathOf("hf.co/o/r/m-Q8_0.gguf"), {"m-Q8_0.gguf", 10, ""});
  ASSERT_TRUE(part.ok());
  EXPECT_FALSE(RemoveModel(root(), **FindModel(root(), "r")).ok());
  EXPECT_EQ(Found("r"), "hf.co/o/r:Q8_0");
}

}  // namespace
}  // namespace troupe
