#include "text/first_message.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

class FirstMessage : public testing::Test {
 protected:
  std::size_t EndOf(const std::vector<TokenId>& prompt) const {
    return EndOfFirstMessage(prompt, *tokenizer_);
  }
  const std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinySentencePieceVocab()).value();
  const TokenId begin_ = *tokenizer_->vocab().bos, end_ = *tokenizer_->vocab().eos, a_ = 40,
                b_ = 41;
};

TEST_F(FirstMessage, EndsWhereTheSecondOneBegins) {
  EXPECT_EQ(EndOf({begin_, a_, b_, end_, begin_, a_, end_, begin_, b_}), 4u);
  EXPECT_EQ(EndOf({end_, begin_, a_, begin_, a_, begin_, b_, begin_, b_}), 3u);
  EXPECT_EQ(EndOf({begin_, a_, begin_, a_, begin_}), 2u);
}

TEST_F(FirstMessage, HasNoEndWhereNoneFollowsOrNoneIsMarked) {
  EXPECT_EQ(EndOf({}), 0u);
  EXPECT_EQ(EndOf({a_, b_, a_, b_, a_}), 0u);
  EXPECT_EQ(EndOf({begin_, a_, b_}), 0u);
  EXPECT_EQ(EndOf({begin_, a_, end_, begin_, b_}), 0u);
  EXPECT_EQ(EndOf({-1, 1 << 30, -1}), 0u);
}

TEST_F(FirstMessage, IsNotLookedForFarBeforeTheAnswer) {
  std::vector<TokenId> prompt = {begin_, a_, begin_, a_, begin_};
  prompt.insert(prompt.end(), 16, b_);
  EXPECT_EQ(EndOf(prompt), 0u);
  prompt.pop_back();
  EXPECT_EQ(EndOf(prompt), 2u);
}

}  // namespace
}  // namespace troupe
