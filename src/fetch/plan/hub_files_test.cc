#include "fetch/plan/hub_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

HubListing Listing(std::initializer_list<const char*> paths) {
  HubListing listing;
  for (const char* path : paths) listing.files.push_back({path, 1'048'576, {}});
  return listing;
}

std::string Chosen(const HubListing& listing, std::string variant) {
  const Result<HubChoice> choice =
      ChooseHubFiles({ModelName::Place::kHub, "o", "r", std::move(variant)}, listing);
  if (!choice.ok()) return choice.status().message();
  std::string text = choice->variant + ":";
  for (const HubFile& file : choice->files) text += " " + file.path;
  return text;
}

TEST(HubFiles, AListingHasSizesAndChecksumsOfLargeFiles) {
  const std::string sum(64, 'a');
  const Result<HubListing> listing = ReadHubListing(
      "o/r", R"({"id":"o/r","sha":"c0ffee","siblings":[{"rfilename":"README.md","size":10},
          {"rfilename":"m.gguf","size":134,"lfs":{"sha256":")" +
                 sum + R"(","size":5000000000,"pointerSize":134}}]})");
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  EXPECT_EQ(listing->commit, "c0ffee");
  EXPECT_THAT(listing->files,
              ElementsAre(HubFile{"README.md", 10, ""}, HubFile{"m.gguf", 5'000'000'000, sum}));
}

TEST(HubFiles, AListingWithNamesThatLeaveItsFolderIsRefused) {
  for (const char* path : {"../m.gguf", "/etc/m.gguf", "a/../../m.gguf", "", "a//b", "a\\u0000b",
                           "a\\nb", ".hidden/../m", "a/", "./m"}) {
    const std::string text = std::string(R"({"siblings":[{"rfilename":")") + path + R"("}]})";
    EXPECT_FALSE(ReadHubListing("o/r", text).ok()) << path;
  }
  EXPECT_FALSE(ReadHubListing("o/r", "{}").ok());
  EXPECT_FALSE(ReadHubListing("o/r", "<html>").ok());
  EXPECT_FALSE(
      ReadHubListing("o/r", R"({"siblings":[{"rfilename":"m","lfs":{"sha256":"x","size":1}}]})")
          .ok());
}

TEST(HubFiles, ATypeIsTheEndOfAFilesName) {
  EXPECT_EQ(TypeInFileName("m-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(TypeInFileName("a/M.q8_0.gguf"), "Q8_0");
  EXPECT_EQ(TypeInFileName("Q4_K/m-IQ2_XXS-00001-of-00002.gguf"), "IQ2_XXS");
  EXPECT_EQ(TypeInFileName("m-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
  EXPECT_EQ(TypeInFileName("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(TypeInFileName("m-BF16.gguf"), "BF16");
  EXPECT_EQ(TypeInFileName("Qwen3-30B-A3B.gguf"), "");
  EXPECT_EQ(TypeInFileName("m.gguf"), "");
}

TEST(HubFiles, TheTypeAskedForIsTakenInAnyCase) {
  const HubListing listing = Listing({"m-Q4_K_M.gguf", "m-Q8_0.gguf", "README.md"});
  EXPECT_EQ(Chosen(listing, "q8_0"), "Q8_0: m-Q8_0.gguf");
  EXPECT_EQ(Chosen(listing, ""), "Q4_K_M: m-Q4_K_M.gguf");
  EXPECT_THAT(Chosen(listing, "Q6_K"), HasSubstr("has no Q6_K; there are Q4_K_M (1.0 MiB), Q8_0"));
}

TEST(HubFiles, ATypeIsNotTheBeginningOfAnother) {
  EXPECT_EQ(Chosen(Listing({"m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf", "m-Q4_K.gguf"}), "Q4_K"),
            "Q4_K: m-Q4_K.gguf");
  EXPECT_EQ(Chosen(Listing({"m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf"}), "Q4_K_M"),
            "Q4_K_M: m-Q4_K_M.gguf");
}

TEST(HubFiles, AllPartsOfASplitModelAreTakenInOrder) {
  const HubListing listing =
      Listing({"Q4_0/m-Q4_0-00002-of-00003.gguf", "Q4_0/m-Q4_0-00003-of-00003.gguf",
               "Q4_0/m-Q4_0-00001-of-00003.gguf", "m-Q8_0.gguf"});
  EXPECT_EQ(Chosen(listing, "Q4_0"),
            "Q4_0: Q4_0/m-Q4_0-00001-of-00003.gguf Q4_0/m-Q4_0-00002-of-00003.gguf "
            "Q4_0/m-Q4_0-00003-of-00003.gguf");
  EXPECT_THAT(Chosen(Listing({"m-Q4_0-00001-of-00003.gguf", "m-Q4_0-00003-of-00003.gguf"}), "Q4_0"),
              HasSubstr("has no m-Q4_0-00002-of-00003.gguf"));
}

TEST(HubFiles, OneOfSeveralFilesOfATypeIsNamed) {
  const HubListing listing = Listing({"a-Q4_0.gguf", "b-Q4_0.gguf", "sub/c.gguf"});
  EXPECT_THAT(Chosen(listing, "Q4_0"), AllOf(HasSubstr("several files of type Q4_0"),
                                             HasSubstr("a-Q4_0.gguf, b-Q4_0.gguf")));
  EXPECT_EQ(Chosen(listing, "b-Q4_0.gguf"), "b-Q4_0.gguf: b-Q4_0.gguf");
  EXPECT_EQ(Chosen(listing, "c.gguf"), "sub/c.gguf: sub/c.gguf");
}

TEST(HubFiles, WhatIsNoModelIsLeftOut) {
  EXPECT_EQ(Chosen(Listing({"mmproj-F16.gguf", "m.imatrix.gguf", "m.gguf"}), ""), "m.gguf: m.gguf");
  EXPECT_THAT(Chosen(Listing({"model.safetensors"}), ""), HasSubstr("has no GGUF file"));
  EXPECT_THAT(Chosen(Listing({"m-Q8_0.gguf", "m-Q6_K.gguf"}), ""),
              HasSubstr("several types: say hf.co/o/r:TYPE with one of Q6_K (1.0 MiB), Q8_0"));
}

TEST(HubFiles, HaveTheAddressOfTheListedCommit) {
  const ModelName name = {ModelName::Place::kHub, "o", "r", ""};
  EXPECT_EQ(HubListingAddress("https://hub", name),
            "https://hub/api/models/o/r/revision/main?blobs=true");
  EXPECT_EQ(HubFileAddress("https://hub", name, "c0ffee", "a b/m.gguf"),
            "https://hub/o/r/resolve/c0ffee/a%20b/m.gguf");
  EXPECT_EQ(HubFileAddress("https://hub", name, "", "m.gguf"),
            "https://hub/o/r/resolve/main/m.gguf");
}

}  // namespace
}  // namespace troupe
