#include "text/grammar/vocab_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

// The text that leads to each token, by a walk from the root.
std::map<TokenId, std::string> Walked(const VocabTrie& trie) {
  std::map<TokenId, std::string> texts;
  std::vector<std::uint32_t> ends;
  std::string text;
  for (std::uint32_t i = 0; i < trie.size(); ++i) {
    for (; !ends.empty() && i >= ends.back(); ends.pop_back()) text.pop_back();
    text += static_cast<char>(trie.node(i).byte);
    ends.push_back(trie.node(i).end);
    for (const TokenId token : trie.TokensAt(i)) texts[token] = text;
  }
  return texts;
}

TEST(VocabTrie, HasEachTextOnceHoweverManyTokensHaveIt) {
  Rng rng(TestSeed());
  std::vector<std::string> texts(500);
  for (std::string& text : texts) {
    for (std::uint64_t n = rng.Below(6); n > 0; --n) text += static_cast<char>('a' + rng.Below(3));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const VocabTrie trie(views, TokenSet(texts.size()));
  const auto walked = Walked(trie);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto found = walked.find(static_cast<TokenId>(i));
    ASSERT_EQ(found != walked.end(), !texts[i].empty());
    if (found != walked.end()) {
      ASSERT_EQ(found->second, texts[i]);
    }
    ASSERT_EQ(trie.TextOf(static_cast<TokenId>(i)), texts[i]);
  }
  EXPECT_LE(trie.size(), 3U + 9 + 27 + 81 + 243);
}

TEST(VocabTrie, TakesFromATokenizerWhatTokensAddToAnAnswer) {
  const auto tokenizer = MakeTokenizer(TinySentencePieceVocab()).value();
  const auto trie = MakeVocabTrie(*tokenizer);
  const auto text_of = [&](std::string_view token) {
    const auto& tokens = tokenizer->vocab().tokens;
    const auto at = std::find(tokens.begin(), tokens.end(), token) - tokens.begin();
    return trie->TextOf(static_cast<TokenId>(at));
  };
  EXPECT_EQ(text_of("▁hello"), " hello");
  EXPECT_EQ(text_of("<0x0A>"), "\n");
  EXPECT_EQ(text_of("<tool>"), "<tool>");
  for (const char* special : {"<unk>", "<s>", "</s>", "<|im_end|>"})
    EXPECT_EQ(text_of(special), "");
  EXPECT_EQ(trie->end_tokens().Count(), 2U);  // </s> and <|im_end|>
  EXPECT_EQ(trie->longest_token(), 6U);
}

}  // namespace
}  // namespace troupe
