#include "text/grammar/json_grammar.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

bool FitsJson(const Grammar& grammar, std::string_view text) {
  Matcher matcher(Automaton::Compile(grammar).value());
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(JsonGrammar, AcceptsValuesAsPrintersWriteThem) {
  const Json value = Json::Parse(R"({"a": [1, -2.5e-3, {"b": []}], "é\n\u0001": {}, "": null,
                                     "t": [true, false, "\"\\/\b 😀"]})")
                         .value();
  for (const int indent : {-1, 0, 1, 2, 4}) {
    EXPECT_TRUE(FitsJson(JsonGrammar(), value.Dump(indent))) << value.Dump(indent);
    EXPECT_TRUE(FitsJson(JsonObjectGrammar(), value.Dump(indent)));
  }
  EXPECT_TRUE(FitsJson(JsonGrammar(), "[1, 2]"));
  EXPECT_FALSE(FitsJson(JsonObjectGrammar(), "[1, 2]"));
  EXPECT_TRUE(FitsJson(JsonGrammar(), R"("\u00e9\uD83D\uDE00\/")"));
}

TEST(JsonGrammar, RefusesWhatIsNoJson) {
  for (const char* text :
       {"",          "{",           "[1,]",        "{\"a\":1,}",   "{a:1}",  "01",
        "1.",        ".5",          "+1",          "tru",          "\"\n\"", "\"\\x\"",
        "\"\\u12\"", "\"\\uD83D\"", "\"\\uDE00\"", "\"\\uD83Dx\"", "[1 2]",  "1 ",
        "{\"a\" 1}", "\"\xFF\""}) {
    EXPECT_FALSE(FitsJson(JsonGrammar(), text)) << text;
  }
}

TEST(JsonGrammar, BlanksAreFew) {
  const auto with_blanks = [](const std::string& blanks) {
    return FitsJson(JsonGrammar(), "[" + blanks + "1]");
  };
  EXPECT_TRUE(with_blanks(" ") && with_blanks("\n\n    ") && with_blanks("\n\t"));
  EXPECT_FALSE(with_blanks("  "));
  EXPECT_FALSE(with_blanks("\n\n\n"));
  EXPECT_FALSE(with_blanks("\n" + std::string(21, ' ')));
}

}  // namespace
}  // namespace troupe
