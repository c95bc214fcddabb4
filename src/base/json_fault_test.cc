#include "base/json_fault.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

// Of the library as it is, so that one with other words is noticed.
std::string JsonFaultOf(std::string_view text) {
  Json::Fault fault;
  EXPECT_FALSE(Json::Parse(text, &fault)) << text;
  return fault.message;
}

TEST(JsonFault, SaysPlaceWhatWasFoundAndWhatIsExpected) {
  EXPECT_EQ(JsonFaultOf("{\"a\": olmoe}"),
            "not JSON: line 1, column 7: found 'o', expected a value");
  EXPECT_EQ(JsonFaultOf("GGUF"), "not JSON: line 1, column 1: found 'G', expected a value");
  EXPECT_EQ(JsonFaultOf(""),
            "not JSON: line 1, column 1: found the end of the text, expected a value");
  EXPECT_EQ(JsonFaultOf("{\n"),
            "not JSON: line 2, column 1: found the end of the text, expected a text in double "
            "quotes");
  EXPECT_EQ(JsonFaultOf("[1 2]"), "not JSON: line 1, column 4: found a number, expected ']'");
  EXPECT_EQ(JsonFaultOf("{\"a\" 1}"), "not JSON: line 1, column 6: found a number, expected ':'");
  EXPECT_EQ(JsonFaultOf("1 2"),
            "not JSON: line 1, column 3: found a number, expected the end of the text");
}

TEST(JsonFault, KeepsWhyATextOrANumberIsNone) {
  EXPECT_EQ(JsonFaultOf("\"abc"),
            "not JSON: line 1, column 5: invalid string: missing closing quote, found '\"abc'");
}

TEST(JsonFault, LeavesOtherWordsAsTheyAre) {
  EXPECT_EQ(ExplainJsonFault("number overflow parsing '1e999'"), "number overflow parsing '1e999'");
  EXPECT_EQ(ExplainJsonFault("[json.exception.x.1] something else"), "something else");
}

}  // namespace
}  // namespace troupe
