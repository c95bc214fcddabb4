#include "base/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

// What reading `text` says; empty if nothing is wrong.
template <typename Read>
std::string ErrorOf(std::string_view text, Read read) {
  const Result<int> result = ReadJson<int>("f.json", text, [&](const JsonValue& json) {
    read(json);
    return 0;
  });
  return result.ok() ? "" : result.status().message();
}

TEST(JsonValueTest, GivesWhatTheReaderMade) {
  const Result<std::uint64_t> sum =
      ReadJson<std::uint64_t>("f.json", R"({"a":[3,4]})", [](const JsonValue& json) {
        const JsonValue a = json.At("a");
        return a.At(std::size_t{0}).Count(0, 9) + a.At(1).Count(0, 9);
      });
  EXPECT_EQ(*sum, 7u);
}

TEST(JsonValueTest, ErrorsNameThePlaceWhatIsThereAndWhatWasExpected) {
  const auto text = R"({"a":[{"b":-1,"c":"x","d":1e400}],"long":")" + std::string(99, 'y') + "\"}";
  EXPECT_THAT(ErrorOf(text, [](const JsonValue&) {}), HasSubstr("f.json: not JSON: "));
  constexpr std::string_view kText = R"({"a":[{"b":-1,"c":"x"}],"n":null})";
  const auto b = [](const JsonValue& json) { return json.At("a").At(std::size_t{0}).At("b"); };
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { b(json).Count(1, 5); }),
            "f.json: a[0].b: -1, expected a whole number from 1 to 5");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { b(json).String(); }),
            "f.json: a[0].b: -1, expected a text");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { b(json).Flag(); }),
            "f.json: a[0].b: -1, expected true or false");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { b(json).size(); }),
            "f.json: a[0].b: -1, expected an array");
  EXPECT_THAT(ErrorOf(kText, [&](const JsonValue& json) { b(json).Size(); }),
              HasSubstr("expected a size as 4096"));
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { json.At("a").At(1); }),
            R"(f.json: a: [{"b":-1,"c":"x"}], expected an array of 2 or more)");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { json.At("n").Number(); }),
            "f.json: n: null, expected a number");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue& json) { json.At("m"); }), "f.json: no 'm'");
  EXPECT_EQ(ErrorOf(kText,
                    [&](const JsonValue& json) {
                      json.AllowOnly({"a", "b"});
                    }),
            "f.json: 'n' is no key here; there are a, b");
  EXPECT_EQ(ErrorOf(kText, [&](const JsonValue&) { JsonValue::Refuse("not ours"); }),
            "f.json: not ours");
}

TEST(JsonValueTest, ErrorsAreShort) {
  const std::string text = "\"" + std::string(999, 'y') + "\"";
  EXPECT_EQ(ErrorOf(text, [](const JsonValue& json) { json.Number(); }),
            "f.json: \"" + std::string(56, 'y') + "..., expected a number");
}

TEST(JsonValueTest, ErrorsOfTheTextAndOfItsMeaningHaveCodesOfTheirOwn) {
  const auto read = [](const JsonValue& json) { return json.Number(); };
  EXPECT_EQ(ReadJson<double>("f", "[", read).status().code(), Code::kDataLoss);
  EXPECT_EQ(ReadJson<double>("f", "[]", read).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(*ReadJson<double>("f", "-2", read), -2);
}

TEST(JsonValueTest, ReadsSizesAndWhatMayBeAbsent) {
  EXPECT_EQ(ErrorOf(R"({"a":4096,"b":"12GiB","t":true})",
                    [](const JsonValue& json) {
                      EXPECT_EQ(json.At("a").Size(), 4_KiB);
                      EXPECT_EQ(json.At("b").Size(), 12_GiB);
                      EXPECT_EQ(json.NumberOr("a", 1), 4096);
                      EXPECT_EQ(json.NumberOr("none", 1), 1);
                      EXPECT_TRUE(json.At("t").Flag());
                      json.AllowOnly({"a", "b", "t"});
                    }),
            "");
}

}  // namespace
}  // namespace troupe
