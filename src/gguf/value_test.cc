#include "gguf/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(Value, TheIndexOfEveryAlternativeIsItsNumberInTheFile) {
  EXPECT_EQ(TypeOf(std::uint8_t{}), ValueType::kUint8);
  EXPECT_EQ(TypeOf(std::int8_t{}), ValueType::kInt8);
  EXPECT_EQ(TypeOf(std::uint16_t{}), ValueType::kUint16);
  EXPECT_EQ(TypeOf(std::int16_t{}), ValueType::kInt16);
  EXPECT_EQ(TypeOf(std::uint32_t{}), ValueType::kUint32);
  EXPECT_EQ(TypeOf(std::int32_t{}), ValueType::kInt32);
  EXPECT_EQ(TypeOf(float{}), ValueType::kFloat32);
  EXPECT_EQ(TypeOf(bool{}), ValueType::kBool);
  EXPECT_EQ(TypeOf(std::string()), ValueType::kString);
  EXPECT_EQ(TypeOf(Array()), ValueType::kArray);
  EXPECT_EQ(TypeOf(std::uint64_t{}), ValueType::kUint64);
  EXPECT_EQ(TypeOf(std::int64_t{}), ValueType::kInt64);
  EXPECT_EQ(TypeOf(double{}), ValueType::kFloat64);
}

TEST(Value, TheElementsOfArraysAreNumberedAlike) {
  EXPECT_EQ(Array{std::vector<std::uint8_t>()}.element_type(), ValueType::kUint8);
  EXPECT_EQ(Array{std::vector<bool>()}.element_type(), ValueType::kBool);
  EXPECT_EQ(Array{StringArray()}.element_type(), ValueType::kString);
  EXPECT_EQ(Array{std::vector<Array>()}.element_type(), ValueType::kArray);
  EXPECT_EQ(Array{std::vector<double>()}.element_type(), ValueType::kFloat64);
}

TEST(Value, IsDescribedByTypeAndContentsOnOneLine) {
  EXPECT_EQ(Describe(std::uint8_t{65}), "uint8 65");
  EXPECT_EQ(Describe(std::int8_t{-3}), "int8 -3");
  EXPECT_EQ(Describe(true), "bool true");
  EXPECT_EQ(Describe(0.5f), "float32 0.5");
  EXPECT_EQ(Describe(std::string("two\nlines")), "string 'two\\x0alines'");
  EXPECT_EQ(Describe(Array{StringArray{"a", "b"}}), "array of 2 string");
}

TEST(StringArray, GivesBackItsStringsInOrder) {
  StringArray array = {"", "expert"};
  array.Append("of");
  std::memcpy(array.AppendUninitialized(3), "mix", 3);
  EXPECT_THAT(array, ElementsAre("", "expert", "of", "mix"));
  EXPECT_EQ(array.size(), 4u);
  EXPECT_EQ(array[0], "");
  EXPECT_EQ(array[3], "mix");
}

TEST(StringArray, TellsApartEqualCharactersCutDifferently) {
  EXPECT_EQ((StringArray{"ab", "c"}), (StringArray{"ab", "c"}));
  EXPECT_NE((StringArray{"ab", "c"}), (StringArray{"a", "bc"}));
  EXPECT_TRUE(StringArray().empty());
}

}  // namespace
}  // namespace troupe
