#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/pre_tokenizer_rules.h"
#include "text/utf8.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The words live as long as the text does.
std::vector<std::string_view> WordsOf(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<std::string_view> words;
  const Status status = pre_tokenizer.ForEachWord(text, [&](std::string_view word) {
    words.push_back(word);
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return words;
}

std::vector<std::string_view> Split(std::string_view name, std::string_view text) {
  return WordsOf(PreTokenizer::Make(name).value(), text);
}

TEST(PreTokenizer, Gpt2KeepsOneBlankWithEachWord) {
  EXPECT_THAT(Split("gpt-2", "Hello world, it's 2024!"),
              ElementsAre("Hello", " world", ",", " it", "'s", " 2024", "!"));
  EXPECT_THAT(Split("gpt-2", "a   b \n"), ElementsAre("a", "  ", " b", " \n"));
  EXPECT_THAT(Split("gpt-2", "a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Split("gpt-2", "IT'S"), ElementsAre("IT", "'", "S"));  // small letters only
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_THAT(Split("qwen2", "it'S 123 (ok)\n\n x"),
              ElementsAre("it", "'S", " ", "1", "2", "3", " (", "ok", ")\n\n", " x"));
  EXPECT_THAT(Split("qwen2", "a  \n  b"), ElementsAre("a", "  \n", " ", " b"));
  EXPECT_THAT(Split("qwen2", "\tx=1;"), ElementsAre("\tx", "=", "1", ";"));
  EXPECT_THAT(Split("qwen2", "价格是100元"), ElementsAre("价格是", "1", "0", "0", "元"));
}

TEST(PreTokenizer, Llama3TakesUpToThreeDigits) {
  EXPECT_THAT(Split("llama-bpe", "I've 12345 $x"),
              ElementsAre("I", "'ve", " ", "123", "45", " $", "x"));
  EXPECT_THAT(Split("llama-bpe", "x ."), ElementsAre("x", " ."));
  EXPECT_TRUE(PreTokenizer::Make("llama-bpe").value().ignores_merges());
  EXPECT_FALSE(PreTokenizer::Make("dbrx").value().ignores_merges());
}

TEST(PreTokenizer, Gpt4oCutsWhereSmallLettersMeetCapitals) {
  EXPECT_THAT(Split("gpt-4o", "camelCase HTTPServer it's"),
              ElementsAre("camel", "Case", " HTTPServer", " it's"));
  EXPECT_THAT(Split("tekken", "camelCase 12"), ElementsAre("camel", "Case", " ", "1", "2"));
}

TEST(PreTokenizer, Qwen35KeepsMarksInsideWords) {
  EXPECT_THAT(Split("qwen35", "e\u0301t"), ElementsAre("e\u0301t"));
  EXPECT_THAT(Split("qwen2", "e\u0301t"), ElementsAre("e", "\u0301t"));
}

TEST(PreTokenizer, BailingCutsAfterOneLineEnd) {
  EXPECT_THAT(Split("bailingmoe", "a\n\nb I'm"), ElementsAre("a", "\n\n", "b", " I", "'m"));
  EXPECT_THAT(Split("bailingmoe", "7 \r\n"), ElementsAre("7", " \r\n"));
}

TEST(PreTokenizer, DeepseekAppliesOneRuleAfterAnother) {
  EXPECT_THAT(Split("deepseek-llm", "Hi you, 12\n中文x"),
              ElementsAre("Hi", " you", ",", " ", "12", "\n", "中文", "x"));
  EXPECT_THAT(Split("deepseek-llm", "Ωμέγα Ⅷ K"),  // letters with case; a number; U+212A
              ElementsAre("Ωμέγα", " ", "Ⅷ", " K"));
  // "=" is a symbol, no punctuation: no rule takes it, and it keeps both its blanks.
  EXPECT_THAT(Split("deepseek-coder", "x = 12;"), ElementsAre("x", " = ", "1", "2", ";"));
  EXPECT_THAT(Split("deepseek-v3", "12345 ab.cd 中文の"),
              ElementsAre("123", "45", " ab", ".cd", " ", "中文の"));
}

TEST(PreTokenizer, StarcoderTakesDigitsFirst) {
  EXPECT_THAT(Split("starcoder", "v10 x"), ElementsAre("v", "1", "0", " x"));
}

TEST(PreTokenizer, FalconAndDefaultCutThreeDigitsFromTheLeft) {
  EXPECT_THAT(Split("falcon", "`a` 12345"), ElementsAre("`", "a", "`", " ", "123", "45"));
  EXPECT_THAT(Split("default", "`a` 12345"), ElementsAre("`", "a", "`", " ", "123", "45"));
}

TEST(PreTokenizer, BlanksAreThoseOfUnicode) {
  EXPECT_THAT(Split("qwen2", "a\u3000\u3000b"), ElementsAre("a", "\u3000", "\u3000b"));
  // U+180E was a blank once; PCRE2 still thinks so.
  EXPECT_THAT(Split("qwen2", "..\u180E"), ElementsAre("..\u180E"));
}

TEST(PreTokenizer, UnknownNameIsAnErrorThatNamesTheKnownOnes) {
  const auto unknown = PreTokenizer::Make("qwen9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), Code::kUnimplemented);
  EXPECT_THAT(unknown.status().message(), HasSubstr("'qwen9' is not known"));
  EXPECT_THAT(unknown.status().message(), HasSubstr("deepseek-llm, deepseek-coder"));
}

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  std::string list = KnownPreTokenizers() + ", ";
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = list.find(", ", at);
    names.push_back(list.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

TEST(PreTokenizer, WordsOfEveryRuleAreTheTextAgain) {
  Rng rng(TestSeed());
  const auto names = AllNames();
  EXPECT_GT(names.size(), 50u);
  for (const std::string& name : names) {
    const PreTokenizer pre_tokenizer = PreTokenizer::Make(name).value();
    for (int round = 0; round < 50; ++round) {
      std::string text;
      for (std::uint64_t left = rng.Below(40); left > 0; --left) {
        constexpr char32_t kEnds[] = {0x80, 0x80, 0x500, 0x3100, 0xD800};
        AppendUtf8(static_cast<char32_t>(rng.Below(kEnds[rng.Below(5)])), text);
      }
      std::string joined;
      const auto words = WordsOf(pre_tokenizer, text);
      for (const std::string_view word : words) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text) << name;
    }
  }
}

TEST(PreTokenizer, LongTextsOfOneKindNeedNoDeepStack) {
  for (const std::string& name : AllNames()) {
    const PreTokenizer pre_tokenizer = PreTokenizer::Make(name).value();
    for (const std::string_view unit : {" ", "a", "aB", "\n ", "'", "1", "é"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      EXPECT_FALSE(WordsOf(pre_tokenizer, text).empty()) << name << " on '" << unit << "'";
    }
  }
}

}  // namespace
}  // namespace troupe
