#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Library = nlohmann::ordered_json;

std::string Again(std::string_view text, int indent = -1) {
  return Json::Parse(text).value().Dump(indent);
}

std::string FaultOf(std::string_view text) {
  Json::Fault fault;
  EXPECT_FALSE(Json::Parse(text, &fault)) << text;
  return fault.message;
}

TEST(JsonTest, NumbersKeepTheirText) {
  for (const char* text :
       {"0", "-1", "18446744073709551615", "-9223372036854775808", "0.1", "-0.0", "1e+300",
        "5e-324", "1.7976931348623157e+308", "1.0", "0.333333333333333", "9007199254740993"}) {
    EXPECT_EQ(Again(text), text);
  }
  EXPECT_TRUE(std::signbit(Json::Parse("-0.0")->AsDouble()));
  EXPECT_EQ(Json::Parse("18446744073709551615")->AsCount(), ~std::uint64_t{0});
}

TEST(JsonTest, WholeNumbersAreCountsOnlyWithoutASignAndAFraction) {
  EXPECT_TRUE(Json::Parse("7")->IsCount());
  EXPECT_FALSE(Json::Parse("-7")->IsCount());
  EXPECT_FALSE(Json::Parse("7.0")->IsCount());
  EXPECT_TRUE(Json::Parse("7.0")->IsNumber());
  EXPECT_EQ(Json::Parse("-7")->AsDouble(), -7);
  EXPECT_FALSE(Json::Parse("\"7\"")->IsNumber());
}

TEST(JsonTest, WhatIsWrittenHasTheTypeOfItsNumber) {
  const Json json = {
      {"int", -3},    {"size", std::size_t{3}}, {"byte", std::uint8_t{200}}, {"float", 0.5f},
      {"whole", 2.0}, {"truth", true},          {"none", nullptr},           {"text", "a"}};
  EXPECT_EQ(json.Dump(),
            R"({"int":-3,"size":3,"byte":200,"float":0.5,"whole":2.0,"truth":true,"none":null,)"
            R"("text":"a"})");
}

TEST(JsonTest, NumbersThatAreNotFiniteBecomeNull) {
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).Dump(), "null");
  EXPECT_EQ(Json::Array({std::nan(""), 1}).Dump(), "[null,1]");
}

TEST(JsonTest, TextsAreEscapedAndBytesThatAreNotUtf8Replaced) {
  EXPECT_EQ(Json("a\"\\\n\t\x01\x7f/").Dump(), "\"a\\\"\\\\\\n\\t\\u0001\x7f/\"");
  EXPECT_EQ(Json("caf\xc3\xa9").Dump(), "\"caf\xc3\xa9\"");
  EXPECT_EQ(Json("a\xff"
                 "b")
                .Dump(),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ((Json{{"k\xff", 1}}).Dump(), "{\"k\xef\xbf\xbd\":1}");
  EXPECT_EQ(Json::Parse(R"("\u00e9\ud83d\ude00\n")")->AsString(), "\xc3\xa9\xf0\x9f\x98\x80\n");
}

TEST(JsonTest, MembersKeepTheirOrder) {
  EXPECT_EQ(Again(R"({"b":1,"a":{"z":[],"y":{}},"c":null})"),
            R"({"b":1,"a":{"z":[],"y":{}},"c":null})");
  Json json;
  json["b"] = 1;
  json["a"]["inner"] = 2;
  json["b"] = 3;
  EXPECT_EQ(json.Dump(), R"({"b":3,"a":{"inner":2}})");
  json.Update({{"c", 4}, {"a", 5}});
  EXPECT_EQ(json.Dump(), R"({"b":3,"a":5,"c":4})");
}

TEST(JsonTest, OfRepeatedKeysTheLastCountsInThePlaceOfTheFirst) {
  for (const char* text : {R"({"a":1,"b":2,"a":3})", R"({"a":1,"a":2,"a":3,"b":[],"c":0,"b":4})"}) {
    EXPECT_EQ(Again(text), Library::parse(text).dump());
  }
}

TEST(JsonTest, AnObjectOfManyKeysIsReadInTime) {
  std::string text = "{\"first\":0";
  for (int i = 0; i < 200'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(Json::Parse(text + "}")->size(), 200'001u);
}

TEST(JsonTest, IndentsAsPeopleRead) {
  EXPECT_EQ(Again(R"({"a":[1,{"b":[]}],"c":{}})", 2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
}

TEST(JsonTest, ListsBecomeArrays) {
  const std::array<int, 2> pair = {3, 4};
  const Json json = {{"list", std::vector<std::vector<int>>{{1}, {}}}, {"pair", pair}};
  EXPECT_EQ(json.Dump(), R"({"list":[[1],[]],"pair":[3,4]})");
  EXPECT_EQ(Json(std::span<const int>(pair)).Dump(), "[3,4]");
}

TEST(JsonTest, ACopyIsItsOwnAndWhatWasMovedIsNull) {
  Json first = {{"list", Json::Array({1, 2})}};
  Json copy = first;
  copy["list"].push_back(3);
  EXPECT_EQ(first.Dump(), R"({"list":[1,2]})");
  const Json moved = std::move(copy);
  EXPECT_TRUE(copy.IsNull());  // NOLINT: says so
  EXPECT_EQ(moved.Dump(), R"({"list":[1,2,3]})");
  first = Json(first["list"]);
  EXPECT_EQ(first.Dump(), "[1,2]");
  Json nested = Json::Array({Json::Array({5})});
  nested = std::move(nested[0]);  // a part of what it replaces
  EXPECT_EQ(nested.Dump(), "[5]");
}

TEST(JsonTest, NumbersAreEqualByValueAndObjectsInOrder) {
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(~std::uint64_t{0}));
  EXPECT_NE(Json(~std::uint64_t{0}), Json(-1));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_NE(Json(), Json(false));
  EXPECT_EQ(*Json::Parse(R"({"a":[1,"x"]})"), (Json{{"a", Json::Array({1, "x"})}}));
  EXPECT_NE(*Json::Parse(R"({"a":1,"b":2})"), *Json::Parse(R"({"b":2,"a":1})"));
}

TEST(JsonTest, FindsOnlyWhatAnObjectHas) {
  const Json json = {{"a", nullptr}};
  ASSERT_NE(json.Find("a"), nullptr);
  EXPECT_EQ(json.Find("b"), nullptr);
  EXPECT_EQ(Json::Array({1}).Find("a"), nullptr);
}

TEST(JsonTest, FaultsSayWhere) {
  Json::Fault fault;
  EXPECT_FALSE(Json::Parse("{\"model_type\": olmoe}", &fault));
  EXPECT_EQ(fault.byte, 16u);
  EXPECT_THAT(fault.message, HasSubstr("not JSON: line 1, column 16: found 'o', expected a value"));
  EXPECT_THAT(FaultOf("[1,\n 1e999]"), HasSubstr("number overflow parsing '1e999'"));
  EXPECT_THAT(FaultOf("[1,\n x]"), HasSubstr("line 2, column 2"));
  EXPECT_THAT(FaultOf("\"\xff\""), HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(FaultOf("1 2"), HasSubstr("column 3"));
  EXPECT_THAT(FaultOf(""), HasSubstr("found the end of the text"));
}

TEST(JsonTest, DeepNestingIsRefusedBeforeItIsBuilt) {
  const std::string open(kDeepestJson, '['), close(kDeepestJson, ']');
  EXPECT_EQ(Again(open + close), open + close);
  EXPECT_EQ(FaultOf("[" + open + close + "]"),
            "nested more than 64 deep, which no file of ours is");
  EXPECT_THAT(FaultOf(std::string(10'000'000, '[')), HasSubstr("nested more than 64 deep"));
  EXPECT_EQ(Again("\"" + open + open + "\""), "\"" + open + open + "\"");
}

// The same random value twice: ours, and the library's as ordered_json prints it.
struct Both {
  Json ours;
  Library theirs;
};

std::string RandomText(Rng& rng) {
  std::string text;
  for (std::uint64_t left = rng.Below(6); left > 0; --left) {
    constexpr std::string_view kSome[] = {
        "a", "\"", "\\", "\n", "\x1f", "\x7f", "\xff", "\xc3\xa9", "\xe2\x80\xa8", "\xc3", "/"};
    text += kSome[rng.Below(std::size(kSome))];
  }
  return text;
}

double RandomDouble(Rng& rng) {
  const std::uint64_t kind = rng.Below(4);
  if (kind == 0) return static_cast<double>(rng.Below(1000)) / 10;
  if (kind == 1) return static_cast<float>(rng.Normal());
  if (kind == 2) return rng.Normal();
  return std::bit_cast<double>(rng.Next());
}

Both RandomValue(Rng& rng, int depth) {
  switch (rng.Below(depth > 0 ? 8 : 6)) {
    case 0:
      return {Json(), Library()};
    case 1:
      return {Json(depth % 2 == 0), Library(depth % 2 == 0)};
    case 2: {
      const auto number = static_cast<std::int64_t>(rng.Next());
      return {Json(number), Library(number)};
    }
    case 3: {
      const std::uint64_t number = rng.Next() >> rng.Below(64);
      return {Json(number), Library(number)};
    }
    case 4: {
      const double number = RandomDouble(rng);
      return {Json(number), Library(number)};
    }
    case 5: {
      const std::string text = RandomText(rng);
      return {Json(text), Library(text)};
    }
    case 6: {
      Both both{Json::Array(), Library::array()};
      for (std::uint64_t left = rng.Below(5); left > 0; --left) {
        Both item = RandomValue(rng, depth - 1);
        both.ours.push_back(std::move(item.ours));
        both.theirs.push_back(std::move(item.theirs));
      }
      return both;
    }
    default: {
      Both both{Json::Object(), Library::object()};
      for (std::uint64_t left = rng.Below(5); left > 0; --left) {
        const std::string key = RandomText(rng);
        Both value = RandomValue(rng, depth - 1);
        both.ours[key] = std::move(value.ours);
        both.theirs[key] = std::move(value.theirs);
      }
      return both;
    }
  }
}

TEST(JsonTest, RandomValuesArePrintedAsTheLibraryPrintsThemAndReadBack) {
  Rng rng(TestSeed());
  for (int round = 0; round < 5000; ++round) {
    const auto [ours, theirs] = RandomValue(rng, 5);
    for (const int indent : {-1, 0, 1, 2}) {
      ASSERT_EQ(ours.Dump(indent),
                theirs.dump(indent, ' ', false, Library::error_handler_t::replace));
    }
    const std::string text = ours.Dump();
    const Json again = Json::Parse(text).value();
    ASSERT_EQ(again.Dump(), Library::parse(text).dump()) << text;
    ASSERT_EQ(Json::Parse(again.Dump()).value(), again) << text;
    ASSERT_EQ(Json(ours).Dump(), text);
  }
}

TEST(JsonTest, WhateverTheLibraryRefusesIsRefused) {
  Rng rng(TestSeed());
  for (int round = 0; round < 20'000; ++round) {
    std::string text = RandomValue(rng, 3).ours.Dump();
    for (std::uint64_t left = rng.Below(3); left > 0; --left) {
      text[rng.Below(text.size())] = "{}[],:\"\\ 0-.eE1tn"[rng.Below(17)];
    }
    const Library theirs = Library::parse(text, nullptr, false);
    const std::optional<Json> ours = Json::Parse(text);
    ASSERT_EQ(ours.has_value(), !theirs.is_discarded()) << text;
    if (!ours) continue;
    ASSERT_EQ(ours->Dump(), theirs.dump()) << text;
  }
}

}  // namespace
}  // namespace troupe
