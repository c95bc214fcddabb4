#include "text/grammar/pattern_rules.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/json.h"
#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

std::shared_ptr<const Automaton> CompilePattern(std::string_view pattern) {
  GrammarBuilder builder;
  const GrammarItem content = AddPattern(pattern, builder).value();
  const GrammarItem quote = GrammarItem::Text("\"");
  const GrammarItem root = builder.Add("root", {{quote, content, quote}});
  return Automaton::Compile(std::move(builder).Take(root.rule)).value();
}

// As a client prints the text.
bool FitsPattern(const std::shared_ptr<const Automaton>& automaton, const std::string& text) {
  Matcher matcher(automaton);
  return matcher.Accept(Json(text).Dump()).value() && matcher.CanEnd().value();
}

std::string PatternError(std::string_view pattern) {
  GrammarBuilder builder;
  const auto item = AddPattern(pattern, builder);
  return item.ok() ? "no error" : std::string(item.status().message());
}

TEST(PatternRules, AgreeWithTheStandardLibraryOnRandomTexts) {
  Rng rng(TestSeed());
  int matches = 0;
  for (const char* pattern : {"^[a-c]{2,4}$", "a", "^a|b$", "^(a|bc)*$", "^(?:a+b?){2}", "[^ab]$",
                              "^\\w\\d?\\W$", "^.$", "", "^a*?b+?$", "^[\\d\\-_]+$", "\\x61\\u0062",
                              "^\\[\\]\\\\\"$", "^(a|)$", "^a{0}b{1,}$", "b|^c{2}"}) {
    const auto automaton = CompilePattern(pattern);
    const std::regex regex(pattern, std::regex::ECMAScript);
    for (int i = 0; i < 400; ++i) {
      std::string text;
      for (std::uint64_t n = rng.Below(6); n > 0; --n) text += "aabbc1_-[]\\\" \n"[rng.Below(14)];
      const bool expected = std::regex_search(text, regex);
      ASSERT_EQ(FitsPattern(automaton, text), expected) << pattern << " and '" << text << "'";
      matches += expected ? 1 : 0;
    }
  }
  EXPECT_GT(matches, 1000);
}

TEST(PatternRules, CharactersBeyondAsciiAndEscapesAreCharacters) {
  EXPECT_TRUE(FitsPattern(CompilePattern("^[à-ü]{2}€$"), "éü€"));
  EXPECT_FALSE(FitsPattern(CompilePattern("^[à-ü]{2}€$"), "éa€"));
  EXPECT_TRUE(FitsPattern(CompilePattern("^.{2}$"), "😀é"));
  EXPECT_TRUE(FitsPattern(CompilePattern("^\\t\\n\\x01$"), "\t\n\x01"));
  EXPECT_FALSE(FitsPattern(CompilePattern("^\\S$"), "\u2003"));
}

TEST(PatternRules, WhatIsNotSupportedIsAnErrorThatNamesThePlace) {
  EXPECT_EQ(PatternError("^(?=a)"),
            "pattern '^(?=a)', byte 3: looking ahead or behind is not supported");
  EXPECT_EQ(PatternError("(?<!a)b"),
            "pattern '(?<!a)b', byte 2: looking ahead or behind is not supported");
  EXPECT_EQ(PatternError("(a)\\1"), "pattern '(a)\\1', byte 5: this escape is not supported");
  EXPECT_EQ(PatternError("a^b"),
            "pattern 'a^b', byte 1: an anchor inside the pattern, only supported at its "
            "beginning and end");
  EXPECT_EQ(PatternError("\\bword"), "pattern '\\bword', byte 2: this escape is not supported");
  EXPECT_EQ(PatternError("(a"), "pattern '(a', byte 2: found the end, expected ')'");
  EXPECT_EQ(PatternError("a)"), "pattern 'a)', byte 1: a ')' without its '('");
  EXPECT_EQ(PatternError("[a"), "pattern '[a', byte 2: found the end, expected ']'");
  EXPECT_EQ(PatternError("[b-a]"), "pattern '[b-a]', byte 4: a range that is none");
  EXPECT_EQ(PatternError("*"), "pattern '*', byte 0: nothing to repeat");
  EXPECT_EQ(PatternError("a{2,1}"),
            "pattern 'a{2,1}', byte 6: a repetition that ends before it begins");
  EXPECT_EQ(PatternError(std::string(300, '(')).substr(309), "', byte 101: groups nested too deep");
  EXPECT_EQ(PatternError("(?<name>a)(?P<other>b)"), "no error");
}

TEST(PatternRules, WithoutQuotesAPatternHasTheCharactersOfItsTextAlone) {
  const CodePointSet without_tags = Complement(CodePointSet{{'<', '<'}});
  GrammarBuilder builder;
  const GrammarItem item = AddPlainPattern("^a.\\s\"?$", without_tags, builder).value();
  const GrammarItem root = builder.Add("root", {{item}});
  const auto automaton = Automaton::Compile(std::move(builder).Take(root.rule)).value();
  for (const auto& [text, fits] : {std::pair{"ab\n\"", true}, {"a\" ", true}, {"a< ", false}}) {
    Matcher matcher(automaton);
    EXPECT_EQ(matcher.Accept(text).value() && matcher.CanEnd().value(), fits) << text;
  }
  GrammarBuilder other;
  EXPECT_FALSE(AddPlainPattern("^<$", without_tags, other).ok());
}

}  // namespace
}  // namespace troupe
