#include "runtime/kept_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace troupe {
namespace {

using StateTokens = std::vector<std::int32_t>;

StateTokens Upwards(std::size_t count, std::int32_t first = 0) {
  StateTokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class KeptStatesTest : public testing::Test {
 protected:
  static std::unique_ptr<StatePool> Pool() {
    ModelConfig config;
    config.layers = 1;
    config.delta = {.key_heads = 1, .value_heads = 1, .head_dim = 16, .taps = 2};
    config.recurrent = {true};
    return StatePool::Create(config, {0, 1}, {.sequences = 1, .saved = 2}).value();
  }
  KeptStatesTest() {
    pool_->OnShortage([this](std::size_t places) { kept_.GiveUp(places); });
  }
  // As if a pass had left this at the end of these tokens of a text.
  void Keep(float value, TokenIds tokens) {
    state_.RollBack(0);
    state_.Begin({.save_after = tokens.size()});
    ASSERT_GT(state_.At(0).save_after, 0u);
    *state_.At(0).tail_saved = value;
    state_.Advance(tokens.size());
    kept_.Keep(tokens, *state_.TakeSaved());
  }
  float Restored(const SavedState& saved) {
    state_.Restore(saved);
    return *state_.At(0).tail_before;
  }

  std::unique_ptr<StatePool> pool_ = Pool();
  KeptStates kept_;
  SequenceState state_ = SequenceState::Create(*pool_).value();
};

TEST_F(KeptStatesTest, TheFurthestOneOfTheSameTextIsFound) {
  const StateTokens text = Upwards(9);
  Keep(1, TokenIds(text).first(3));
  Keep(2, TokenIds(text).first(7));
  EXPECT_EQ(Restored(*kept_.Find(text)), 2);
  EXPECT_EQ(Restored(*kept_.Find(TokenIds(text).first(7))), 2);
  EXPECT_EQ(Restored(*kept_.Find(TokenIds(text).first(6))), 1);
  EXPECT_EQ(kept_.Find(TokenIds(text).first(2)), nullptr);
  StateTokens other = text;
  other[5] = 99;  // parts between the two
  EXPECT_EQ(Restored(*kept_.Find(other)), 1);
  other[1] = 99;
  EXPECT_EQ(kept_.Find(other), nullptr);
  EXPECT_EQ(kept_.counters().found, 4u);
}

TEST_F(KeptStatesTest, ATextWithASaltFindsOnlyStatesOfTheSame) {
  const StateTokens text = Upwards(3);
  state_.Begin({.save_after = text.size()});
  *state_.At(0).tail_saved = 1;
  state_.Advance(text.size());
  kept_.Keep(text, *state_.TakeSaved(), "a");
  EXPECT_NE(kept_.Find(text, "a"), nullptr);
  EXPECT_EQ(kept_.Find(text, "b"), nullptr);
  EXPECT_EQ(kept_.Find(text), nullptr);
  EXPECT_TRUE(kept_.All().empty());  // what has a salt is not written down
  Keep(2, text);
  EXPECT_EQ(kept_.All().size(), 1u);
  EXPECT_EQ(Restored(*kept_.Find(text)), 2);
}

TEST_F(KeptStatesTest, WhatIsThereIsNotKeptAgain) {
  const StateTokens text = Upwards(3);
  Keep(1, text);
  Keep(1, text);
  EXPECT_EQ(kept_.size(), 1u);
  EXPECT_EQ(kept_.counters().kept, 1u);
}

TEST_F(KeptStatesTest, TheOneThatWasNotUsedForLongestMakesRoom) {
  Keep(1, Upwards(3, 10));
  Keep(1, Upwards(3, 20));
  ASSERT_NE(kept_.Find(Upwards(4, 10)), nullptr);
  Keep(1, Upwards(3, 30));
  EXPECT_EQ(kept_.size(), 2u);
  EXPECT_EQ(kept_.Find(Upwards(4, 20)), nullptr);
  EXPECT_NE(kept_.Find(Upwards(4, 10)), nullptr);
  EXPECT_NE(kept_.Find(Upwards(4, 30)), nullptr);
  EXPECT_EQ(kept_.counters().given_up, 1u);
  EXPECT_EQ(kept_.GiveUp(5), 2u);
}

}  // namespace
}  // namespace troupe
