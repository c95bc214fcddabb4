#include "runtime/reading_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "forge/pack_model.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(ReadingConditionsTest, DifferByWhatDecidesWhatIsRead) {
  TempFolder folder;
  const std::string path = folder.PathOf("m.gguf"), experts = folder.PathOf("m.experts");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-olmoe"), SynthOptions(), path).ok());
  const GgufModel model = GgufModel::Open(path).value();
  ASSERT_TRUE(PackModel(model, {}, experts).ok());
  const auto described = [&](const OffloadOptions& offload, const std::string& container = "") {
    return DescribeReading(path, container, offload).value();
  };
  const std::string plain = described({});
  EXPECT_EQ(plain,
            "container none, --cache-share layer, --shallow as profiled, profile none, governed");
  std::set<std::string> different = {plain, described({}, experts)};
  different.insert(described({.sharing = CacheSharing::kGlobal}));
  different.insert(described({.prefetch = {.governed = false}}));
  different.insert(described({.shallow_layers = 0}));
  different.insert(described({.profile = folder.Write("a.json", "1")}));
  folder.Write("m.profile.json", "2");
  different.insert(described({}));
  folder.Write("m.profile.json", "3");  // made anew under its name
  different.insert(described({}));
  different.insert(described({.predictor = "scores"}));
  folder.Write("m.scores", "4");
  different.insert(described({.predictor = "scores"}));
  EXPECT_EQ(different.size(), 10u);
  EXPECT_EQ(described({.profile = "none"}), plain);
}

TEST(ReadingConditionsTest, AContainerOfOtherExpertsIsAnother) {
  TempFolder folder;
  const auto packed = [&](std::uint64_t seed) {
    const std::string path = folder.PathOf("m.gguf"), experts = folder.PathOf("m.experts");
    std::filesystem::remove(experts);
    EXPECT_TRUE(Synthesize(*FindShape("tiny-olmoe"), {.seed = seed}, path).ok());
    EXPECT_TRUE(PackModel(GgufModel::Open(path).value(), {}, experts).ok());
    return HashOfContainer(experts).value();
  };
  const std::string first = packed(1);
  EXPECT_NE(packed(2), first);
  EXPECT_EQ(packed(1), first);
}

TEST(ReadingConditionsTest, AFileThatWasNamedHasToBeThere) {
  EXPECT_THAT(HashOfProfile("m.gguf", "/no/such.json").status().message(),
              HasSubstr("/no/such.json"));
  EXPECT_THAT(HashOfContainer("/no/such.experts").status().message(),
              HasSubstr("/no/such.experts"));
  EXPECT_EQ(HashOfBuddies("/no/m.gguf", "").value(), "none");
}

}  // namespace
}  // namespace troupe
