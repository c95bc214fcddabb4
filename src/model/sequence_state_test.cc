#include "model/sequence_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

// Three layers of which two have a state: 2 matrices of 16 x 16, and 3 inputs of 64 channels.
ModelConfig TwoOfThree() {
  ModelConfig config;
  config.layers = 3;
  config.delta = {.key_heads = 1, .value_heads = 2, .head_dim = 16, .taps = 4};
  config.recurrent = {true, false, true};
  return config;
}

constexpr std::size_t kTail = 3 * 64, kMatrices = 2 * 16 * 16;

std::unique_ptr<StatePool> StatesFor(std::uint32_t sequences, std::uint32_t saved = 0) {
  return StatePool::Create(TwoOfThree(), {0, 3}, {.sequences = sequences, .saved = saved}).value();
}

void Write(SequenceState& state, float value, std::size_t tokens, std::size_t save_after = 0) {
  state.Begin({.save_after = save_after});
  for (const std::uint32_t layer : {0, 2}) {
    const SequenceState::Layer at = state.At(layer);
    std::fill_n(at.tail_after, kTail, value + static_cast<float>(layer));
    std::fill_n(at.matrices_after, kMatrices, -value);
    if (at.save_after == 0) continue;
    std::fill_n(at.tail_saved, kTail, value + 0.5f + static_cast<float>(layer));
    std::fill_n(at.matrices_saved, kMatrices, -value - 0.5f);
  }
  if (tokens > 0) state.Advance(tokens);
}

bool Holds(const SequenceState& state, float value) {
  for (const std::uint32_t layer : {0, 2}) {
    const SequenceState::Layer at = state.At(layer);
    const float in_tail = value == 0 ? 0 : value + static_cast<float>(layer);
    if (std::count(at.tail_before, at.tail_before + kTail, in_tail) != kTail) return false;
    if (std::count(at.matrices_before, at.matrices_before + kMatrices, -value) != kMatrices) {
      return false;
    }
  }
  return true;
}

TEST(SequenceStates, TakeTheBytesThatWereSaid) {
  // Each has two places, and one state can be kept.
  const StatePoolShape shape{.sequences = 4, .saved = 1};
  const Bytes expected((4 * 2 + 1) * 2 * (kTail + kMatrices) * sizeof(float));
  EXPECT_EQ(StatePool::BytesFor(TwoOfThree(), {0, 3}, shape), expected);
  EXPECT_EQ(StatesFor(4, 1)->bytes(), expected);
  EXPECT_EQ(StatePool::BytesFor(TwoOfThree(), {1, 2}, shape), Bytes());
  EXPECT_EQ(StatePool::BytesFor(ModelConfig(), {0, 0}, shape), Bytes());
}

TEST(SequenceStates, OfConvolutionsAreTheirLastInputs) {
  ModelConfig config;
  config.layers = 3;
  config.width = 32;
  config.short_conv_taps = 3;
  config.recurrent = {true, true, false};
  EXPECT_EQ(StatePool::BytesFor(config, {0, 3}, {.sequences = 1}),
            Bytes(2 * 2 * 2 * 32 * sizeof(float)));
}

TEST(SequenceStates, OfMamba2AreMatricesAndTheLastInputsOfValuesKeysAndQueries) {
  ModelConfig config;
  config.layers = 3;
  config.space = {.heads = 4, .head_dim = 16, .groups = 1, .key_dim = 32, .taps = 4};
  config.recurrent = {true, false, true};
  const std::size_t channels = 4 * 16 + 2 * 32, floats = 3 * channels + 4 * 16 * 32;
  const std::size_t inputs = 5 * (channels + 2 * 4);
  EXPECT_EQ(StatePool::BytesFor(config, {0, 3}, {.sequences = 1, .inputs = 5}),
            Bytes(2 * (2 * floats + inputs) * sizeof(float)));
}

TEST(SequenceStates, BeginWithZerosWhateverWasThereBefore) {
  const auto pool = StatesFor(1);
  std::optional<SequenceState> state = SequenceState::Create(*pool).value();
  EXPECT_EQ(SequenceState::Create(*pool).status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(Holds(*state, 0));
  Write(*state, 5, 1);
  Write(*state, 6, 1);
  state.reset();
  EXPECT_EQ(pool->free_places(), 2u);
  EXPECT_TRUE(Holds(SequenceState::Create(*pool).value(), 0));
}

TEST(SequenceStates, APassThatDoesNotEndLeavesThemAsTheyWere) {
  const auto pool = StatesFor(2);
  SequenceState state = SequenceState::Create(*pool).value();
  SequenceState other = SequenceState::Create(*pool).value();
  Write(state, 5, 3);
  Write(state, 6, 0);
  EXPECT_TRUE(Holds(state, 5));
  EXPECT_TRUE(Holds(other, 0));
  EXPECT_EQ(state.length(), 3u);
  Write(state, 7, 2);
  EXPECT_TRUE(Holds(state, 7));
  EXPECT_EQ(state.length(), 5u);
}

TEST(SequenceStates, GoBackToWhereTheLastPassBeganOrToTheBeginning) {
  const auto pool = StatesFor(1);
  SequenceState state = SequenceState::Create(*pool).value();
  Write(state, 5, 3);
  Write(state, 6, 4);
  EXPECT_EQ(state.RollBack(7), 7u);
  EXPECT_TRUE(Holds(state, 6));
  EXPECT_EQ(state.RollBack(5), 3u);
  EXPECT_TRUE(Holds(state, 5));
  EXPECT_EQ(state.RollBack(3), 3u);
  EXPECT_EQ(state.RollBack(2), 0u);
  EXPECT_TRUE(Holds(state, 0));

  // A pass that did not end has overwritten where the one before it began.
  Write(state, 5, 3);
  Write(state, 6, 4);
  Write(state, 7, 0);
  EXPECT_EQ(state.RollBack(5), 0u);
}

TEST(SequenceStates, APassLeavesWhatTheyWereOnItsWayAndTheirEndForOthers) {
  const auto pool = StatesFor(2, 1);
  std::optional<SequenceState> first = SequenceState::Create(*pool).value();
  SequenceState second = SequenceState::Create(*pool).value();
  Write(*first, 5, 3, 2);
  std::optional<SavedState> on_the_way = first->TakeSaved();
  ASSERT_TRUE(on_the_way.has_value());
  EXPECT_EQ(on_the_way->length(), 2u);
  EXPECT_FALSE(first->TakeSaved().has_value());
  Write(*first, 6, 4, 2);
  EXPECT_FALSE(first->TakeSaved().has_value()) << "there was no place left";
  const SavedState left = std::move(*first).Leave();
  first.reset();
  EXPECT_EQ(pool->free_places(), 1u);

  second.Restore(*on_the_way);
  EXPECT_TRUE(Holds(second, 5.5f));
  EXPECT_EQ(second.length(), 2u);
  Write(second, 9, 1);
  second.Restore(left);
  EXPECT_TRUE(Holds(second, 6));
  EXPECT_EQ(second.RollBack(5), 0u);  // where it was before is forgotten
  on_the_way.reset();
  EXPECT_EQ(pool->free_places(), 2u);
}

TEST(SequenceStates, WhatAPassThatFailsHasSavedIsNothing) {
  const auto pool = StatesFor(1, 1);
  SequenceState state = SequenceState::Create(*pool).value();
  Write(state, 5, 0, 2);
  EXPECT_EQ(pool->free_places(), 0u);
  Write(state, 6, 3);
  EXPECT_FALSE(state.TakeSaved().has_value());
  EXPECT_EQ(pool->free_places(), 1u);
}

TEST(SequenceStates, WhoKeepsSavedOnesIsAskedToLetThemGo) {
  const auto pool = StatesFor(1, 1);
  std::vector<SavedState> kept;
  pool->OnShortage([&](std::size_t places) {
    while (places-- > 0 && !kept.empty()) kept.pop_back();
  });
  SequenceState state = SequenceState::Create(*pool).value();
  for (int pass = 0; pass < 2; ++pass) {
    Write(state, 5, 3, 1);
    kept.push_back(*state.TakeSaved());
    EXPECT_EQ(kept.size(), 1u);
  }
  kept.push_back(std::move(state).Leave());
  {
    const auto another = SequenceState::Create(*pool);
    EXPECT_TRUE(another.ok());
    EXPECT_EQ(kept.size(), 1u);
    pool->GiveUpSaved();
    EXPECT_TRUE(kept.empty());
    EXPECT_EQ(pool->free_places(), 1u);
  }
  EXPECT_EQ(pool->free_places(), 3u);
}

}  // namespace
}  // namespace troupe
