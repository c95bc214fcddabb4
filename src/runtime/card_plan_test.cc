#include "runtime/card_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kCardWidth = 64, kCardFf = 96, kCardExperts = 8;

// Two layers of experts behind a dense one.
struct PlannedCard {
  TensorInfo gate{{"g", TensorType::kQ8_0, {kCardWidth, kCardFf, kCardExperts}}};
  TensorInfo up{{"u", TensorType::kQ8_0, {kCardWidth, kCardFf, kCardExperts}}};
  TensorInfo down{{"d", TensorType::kQ8_0, {kCardFf, kCardWidth, kCardExperts}}};
  ExpertLayouts layouts{{}, ExpertLayout::For(gate, up, down), ExpertLayout::For(gate, up, down)};
  ModelConfig config;
  GpuInfo info{.name = "a card", .memory = 8_GiB, .largest_buffer = 2_GiB};

  PlannedCard() {
    config.width = kCardWidth;
    config.moe.routing = {.experts = kCardExperts, .top_k = 2};
  }
  Result<CardPlan> Plan(std::optional<Bytes> memory, std::uint32_t chunk = 16) const {
    return PlanCard(config, layouts, info, {.choice = "auto", .memory = memory}, chunk);
  }
};

TEST(CardPlanTest, HoldsAsManyExpertsAsTheBudgetHasRoomFor) {
  const PlannedCard planned;
  const CardPlan all = planned.Plan(1_GiB).value();
  EXPECT_EQ(all.experts, 2 * kCardExperts);
  EXPECT_EQ(all.shape.slots, 2 * kCardExperts);
  EXPECT_TRUE(all.holds_all());
  const Bytes beside = GpuWorker::DeviceBytes(all.shape);
  for (std::uint32_t slots = 2; slots < 2 * kCardExperts; ++slots) {
    const Bytes budget = beside + slots * all.shape.slot;
    const CardPlan plan = planned.Plan(budget).value();
    EXPECT_EQ(plan.shape.slots, slots);
    EXPECT_EQ(plan.total(), budget);
    EXPECT_EQ(planned.Plan(budget + all.shape.slot - Bytes(1))->shape.slots, slots);
  }
  const Status one = planned.Plan(beside + all.shape.slot).status();
  EXPECT_EQ(one.code(), Code::kInvalidArgument);
  EXPECT_THAT(one.message(), HasSubstr("hold no two experts"));
}

TEST(CardPlanTest, LeavesAPartOfACardToItsDriverUnlessSomebodySays) {
  const PlannedCard planned;
  EXPECT_EQ(planned.Plan(std::nullopt)->budget, 8_GiB - Bytes((8_GiB).count() / 10));
  EXPECT_EQ(DefaultCardBudget({.memory = 2_GiB}), 1536_MiB);
  EXPECT_EQ(DefaultCardBudget({.memory = 100_MiB}), Bytes(0));
}

TEST(CardPlanTest, ADeviceWithoutMemoryOfItsOwnTakesTheMachines) {
  PlannedCard planned;
  planned.info.shares_memory = true;
  EXPECT_THAT(planned.Plan(std::nullopt).status().message(), HasSubstr("--vram says how much"));
  const CardPlan plan = planned.Plan(1_GiB).value();
  planned.info.shares_memory = false;
  const CardPlan card = planned.Plan(1_GiB).value();
  EXPECT_EQ(CardHostBytes(plan, planned.config, 16),
            CardHostBytes(card, planned.config, 16) + card.total());
}

TEST(CardPlanTest, PassesThatAreLongerThanTheCardTakesCostNoMemory) {
  const PlannedCard planned;
  const CardPlan plan = planned.Plan(1_GiB, 1u << 20).value();
  EXPECT_EQ(plan.shape.experts.rows, 2048u);
  EXPECT_EQ(plan.shape.answers, 2048u * 2);
}

TEST(CardPlanTest, ASlotHoldsAnExpertAsMemoryDoesWithItsBiasesBehindIt) {
  const PlannedCard planned;
  Rng rng(3);
  const ExpertLayout& layout = planned.layouts[1];
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::span<const std::byte>> views;
  for (const ExpertMatrix& matrix : layout.matrices) {
    rows.push_back(RandomRows(matrix.type, matrix.rows, matrix.cols, rng));
  }
  for (const auto& some : rows) views.emplace_back(some);
  std::vector<std::byte> slot(layout.SlotBytes());
  layout.Pack(views, slot);
  std::vector<float> biases(2 * kCardFf + kCardWidth);
  for (float& bias : biases) bias = static_cast<float>(rng.Normal());
  Mlp expert = layout.At(slot.data());
  expert.gate_bias = biases.data();
  expert.up_bias = biases.data() + kCardFf;
  expert.down_bias = biases.data() + 2 * kCardFf;

  const CardLayout card(layout, /*biases=*/true);
  std::vector<std::byte> filled(card.SlotBytes().count(), std::byte{0xee});
  EXPECT_EQ(card.Fill(expert, filled), card.SlotBytes());
  EXPECT_EQ(std::memcmp(filled.data(), slot.data(), slot.size()), 0);
  const GpuMlp placed = card.At(GateForm::kClamped);
  EXPECT_EQ(placed.form, GateForm::kClamped);
  EXPECT_EQ(placed.up.at, layout.matrices[1].slot_offset);
  EXPECT_EQ(std::memcmp(filled.data() + placed.gate_bias.at * sizeof(float), biases.data(),
                        biases.size() * sizeof(float)),
            0);
  EXPECT_EQ(placed.up_bias.at, placed.gate_bias.at + kCardFf);
  EXPECT_EQ(placed.down_bias.at, placed.up_bias.at + kCardFf);
  EXPECT_TRUE(card.has_biases());
  EXPECT_FALSE(CardLayout(layout, false).has_biases());
}

TEST(CardPlanTest, AnExpertInOtherTypesDoesNotFit) {
  const PlannedCard planned;
  const ExpertLayout& layout = planned.layouts[1];
  const ExpertLayout low = layout.In({TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0});
  const std::vector<std::byte> slot(layout.SlotBytes());
  EXPECT_TRUE(CardLayout(layout, false).Fits(layout.At(slot.data())));
  EXPECT_FALSE(CardLayout(layout, false).Fits(low.At(slot.data())));
  Mlp with_factor = layout.At(slot.data());  // which nobody would apply there
  const float factor = 2;
  with_factor.down.factor = &factor;
  EXPECT_FALSE(CardLayout(layout, false).Fits(with_factor));
}

TEST(CardPlanTest, WhatWasAskedForByNameMustBeThere) {
  const PlannedCard planned;
  std::string why;
  const auto fails = [](std::span<const TensorType> types) {
    EXPECT_EQ(types.size(), 1u);
    return Result<TestedGpu>(Error(Code::kFailedPrecondition, "one wrong bit"));
  };
  const auto named = FindCard({.choice = "rtx", .open = fails}, planned.layouts, true, why);
  EXPECT_EQ(named.status().message(), "--gpu rtx: one wrong bit");
  const auto any = FindCard({.choice = "auto", .open = fails}, planned.layouts, true, why);
  ASSERT_TRUE(any.ok());
  EXPECT_FALSE(any->has_value());
  EXPECT_EQ(why, "one wrong bit");
  EXPECT_FALSE(FindCard({}, planned.layouts, true, why)->has_value());
  EXPECT_FALSE(FindCard({.choice = "no such device"}, planned.layouts, true, why).ok());
}

}  // namespace
}  // namespace troupe
