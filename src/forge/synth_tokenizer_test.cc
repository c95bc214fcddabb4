#include "forge/synth_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe {
namespace {

Metadata Generated(std::uint32_t vocabulary) {
  Metadata metadata;
  EXPECT_TRUE(AddGeneratedTokenizer(vocabulary, metadata).ok());
  return metadata;
}

std::vector<std::string> Texts(const Metadata& metadata) {
  const StringArray& tokens = **metadata.GetStrings("tokenizer.ggml.tokens");
  return {tokens.begin(), tokens.end()};
}

TEST(GeneratedTokenizer, HasAsManyTokensAsTheShapeAndNoTextTwice) {
  for (const std::uint32_t vocabulary : {512u, 26112u}) {
    const Metadata metadata = Generated(vocabulary);
    const std::vector<std::string> texts = Texts(metadata);
    EXPECT_EQ(texts.size(), vocabulary);
    EXPECT_EQ(std::set(texts.begin(), texts.end()).size(), vocabulary);
    EXPECT_EQ(metadata.GetFloats("tokenizer.ggml.scores")->size(), vocabulary);
    EXPECT_EQ(metadata.GetInts("tokenizer.ggml.token_type")->size(), vocabulary);
  }
}

// A piece that no merge of two others makes would never be used.
TEST(GeneratedTokenizer, CanMergeEveryPieceFromTwoOthers) {
  const Metadata metadata = Generated(512);
  const std::vector<std::string> texts = Texts(metadata);
  const std::vector<std::int64_t> types = *metadata.GetInts("tokenizer.ggml.token_type");
  std::set<std::string> normal;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (types[i] == 1) normal.insert(texts[i]);
  }
  std::size_t merged = 0;
  for (const std::string& text : normal) {
    if (text.size() == 1 || text == "\xe2\x96\x81") continue;
    bool found = false;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      found |= normal.count(text.substr(0, cut)) > 0 && normal.count(text.substr(cut)) > 0;
    }
    EXPECT_TRUE(found) << text;
    ++merged;
  }
  EXPECT_GT(merged, 90u);
}

TEST(GeneratedTokenizer, RefusesAVocabularyTooSmallForItsBytes) {
  Metadata metadata;
  const Status status = AddGeneratedTokenizer(300, metadata);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("a vocabulary of 300"));
}

TEST(BorrowedTokenizer, KeepsItsTokensAndPadsWithUnusedOnes) {
  Metadata from("lender.gguf");
  from.Set("general.name", "not the tokenizer's");
  from.Set("tokenizer.ggml.model", "gpt2");
  from.Set("tokenizer.ggml.tokens", Array{StringArray{"a", "b"}});
  from.Set("tokenizer.ggml.merges", Array{StringArray{"a b"}});
  Metadata out;
  ASSERT_TRUE(AddTokenizerOf(from, 4, out).ok());
  EXPECT_EQ(Texts(out), (std::vector<std::string>{"a", "b", "[UNUSED2]", "[UNUSED3]"}));
  EXPECT_EQ(*out.GetInts("tokenizer.ggml.token_type"), (std::vector<std::int64_t>{1, 1, 5, 5}));
  EXPECT_NE(out.Find("tokenizer.ggml.merges"), nullptr);
  EXPECT_EQ(out.Find("general.name"), nullptr);
}

TEST(BorrowedTokenizer, RefusesMoreTokensThanTheShapeHas) {
  Metadata from("lender.gguf");
  from.Set("tokenizer.ggml.tokens", Array{StringArray{"a", "b", "c"}});
  Metadata out;
  EXPECT_EQ(AddTokenizerOf(from, 2, out).message(),
            "lender.gguf: 3 tokens, at most the shape's vocabulary of 2 expected");
}

TEST(BorrowedTokenizer, RefusesScoresThatAreNoFloats) {
  Metadata from("lender.gguf");
  from.Set("tokenizer.ggml.tokens", Array{StringArray{"a"}});
  from.Set("tokenizer.ggml.scores", "many");
  Metadata out;
  EXPECT_THAT(AddTokenizerOf(from, 2, out).message(),
              ::testing::HasSubstr("key 'tokenizer.ggml.scores' is string 'many'"));
}

}  // namespace
}  // namespace troupe
