#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace troupe {
namespace {

using ::testing::ElementsAre;

Metadata Sample() {
  Metadata metadata("m.gguf");
  metadata.Set("u8", std::uint8_t{200});
  metadata.Set("i16", std::int16_t{-7});
  metadata.Set("u64", std::numeric_limits<std::uint64_t>::max());
  metadata.Set("f32", 0.5f);
  metadata.Set("f64", 1e-300);
  metadata.Set("yes", true);
  metadata.Set("name", std::string("tiny"));
  metadata.Set("ints", Array{std::vector<std::int32_t>{3, 4}});
  metadata.Set("mixed", Array{std::vector<std::int8_t>{3, -4}});
  metadata.Set("floats", Array{std::vector<float>{0.25f, 2.0f}});
  metadata.Set("bools", Array{std::vector<bool>{true}});
  metadata.Set("words", Array{StringArray{"a", "", "c"}});
  metadata.Set("nested", Array{std::vector<Array>{Array{StringArray{"x"}}}});
  return metadata;
}

TEST(Metadata, ReadsIntegersOfAnyWidthThatFit) {
  const Metadata metadata = Sample();
  EXPECT_EQ(metadata.GetUint("u8").value(), 200u);
  EXPECT_EQ(metadata.GetInt("u8").value(), 200);
  EXPECT_EQ(metadata.GetInt("i16").value(), -7);
  EXPECT_EQ(metadata.GetUint("u64").value(), std::numeric_limits<std::uint64_t>::max());
}

TEST(Metadata, AnIntegerThatDoesNotFitIsAnErrorWithItsValue) {
  EXPECT_EQ(Sample().GetUint("i16").status().ToString(),
            "invalid argument: m.gguf: key 'i16' is int16 -7, an integer of at least 0 expected");
  EXPECT_EQ(Sample().GetInt("u64").status().message(),
            "m.gguf: key 'u64' is uint64 18446744073709551615, an integer below 2^63 expected");
}

TEST(Metadata, ReadsTheOtherScalars) {
  const Metadata metadata = Sample();
  EXPECT_EQ(metadata.GetFloat("f32").value(), 0.5);
  EXPECT_EQ(metadata.GetFloat("f64").value(), 1e-300);
  EXPECT_TRUE(metadata.GetBool("yes").value());
  EXPECT_EQ(metadata.GetString("name").value(), "tiny");
}

TEST(Metadata, NoKindOfValuePassesForAnother) {
  const Metadata metadata = Sample();
  for (const char* key : {"f32", "yes", "name", "ints"}) {
    EXPECT_EQ(metadata.GetUint(key).status().code(), Code::kInvalidArgument) << key;
    EXPECT_EQ(metadata.GetInt(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"u8", "yes", "name", "floats"}) {
    EXPECT_EQ(metadata.GetFloat(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"u8", "f32", "name", "bools"}) {
    EXPECT_EQ(metadata.GetBool(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"u8", "f32", "yes", "words"}) {
    EXPECT_EQ(metadata.GetString(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"u8", "floats", "bools", "words", "nested", "mixed"}) {
    EXPECT_EQ(metadata.GetUints(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"f32", "ints", "bools", "words", "nested"}) {
    EXPECT_EQ(metadata.GetFloats(key).status().code(), Code::kInvalidArgument) << key;
  }
  for (const char* key : {"name", "ints", "nested"}) {
    EXPECT_EQ(metadata.GetStrings(key).status().code(), Code::kInvalidArgument) << key;
  }
}

TEST(Metadata, ReadsArraysOfAnyWidth) {
  const Metadata metadata = Sample();
  EXPECT_THAT(metadata.GetUints("ints").value(), ElementsAre(3, 4));
  EXPECT_THAT(metadata.GetInts("mixed").value(), ElementsAre(3, -4));
  EXPECT_THAT(metadata.GetFloats("floats").value(), ElementsAre(0.25, 2.0));
  EXPECT_THAT(*metadata.GetStrings("words").value(), ElementsAre("a", "", "c"));
}

TEST(Metadata, AMissingKeyIsNotFoundAndNamed) {
  EXPECT_EQ(Sample().GetUint("none").status().ToString(), "not found: m.gguf: no key 'none'");
  EXPECT_EQ(Sample().Find("none"), nullptr);
}

TEST(Metadata, ADefaultStandsInForAMissingKeyButNotForAWrongOne) {
  const Metadata metadata = Sample();
  EXPECT_EQ(metadata.GetUintOr("none", 9).value(), 9u);
  EXPECT_EQ(metadata.GetIntOr("none", -9).value(), -9);
  EXPECT_EQ(metadata.GetFloatOr("none", 9.5).value(), 9.5);
  EXPECT_TRUE(metadata.GetBoolOr("none", true).value());
  EXPECT_EQ(metadata.GetStringOr("none", "nine").value(), "nine");
  EXPECT_EQ(metadata.GetUintOr("u8", 9).value(), 200u);
  EXPECT_FALSE(metadata.GetUintOr("name", 9).ok());
  EXPECT_FALSE(metadata.GetIntOr("name", 9).ok());
  EXPECT_FALSE(metadata.GetFloatOr("name", 9).ok());
  EXPECT_FALSE(metadata.GetBoolOr("name", true).ok());
  EXPECT_FALSE(metadata.GetStringOr("u8", "nine").ok());
}

TEST(Metadata, KeepsOrderThroughAddSetAndErase) {
  Metadata metadata;
  ASSERT_TRUE(metadata.Add("a", std::uint8_t{1}).ok());
  ASSERT_TRUE(metadata.Add("b", std::uint8_t{2}).ok());
  metadata.Set("c", std::uint8_t{3});
  EXPECT_EQ(metadata.Add("b", std::uint8_t{9}).code(), Code::kAlreadyExists);
  EXPECT_TRUE(metadata.Erase("a"));
  EXPECT_FALSE(metadata.Erase("a"));
  metadata.Set("b", std::uint8_t{4});
  EXPECT_THAT(metadata.entries(), ElementsAre(Metadata::Entry{"b", std::uint8_t{4}},
                                              Metadata::Entry{"c", std::uint8_t{3}}));
  EXPECT_EQ(metadata.GetUint("c").value(), 3u);
}

}  // namespace
}  // namespace troupe
