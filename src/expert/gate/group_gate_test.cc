#include "expert/gate/group_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace troupe {
namespace {

using testing::HasSubstr;

GroupGate TwoLayers() {
  return {
      .width = 2,
      .experts = 5,
      .groups = 2,
      .layers = {
          {.layer = 1, .groups = {{0, 1}, {2, 3, 4}}, .weights = {1, 2, 3, 4}, .bias = {0, 0}},
          {.layer = 3, .groups = {{0, 2, 4}, {1, 3}}, .weights = {1, 2, 3, 4}, .bias = {0, 0}}}};
}

TEST(GroupGate, SaysHowManyGroupsHaveEnoughExperts) {
  const GroupGate gate = TwoLayers();
  EXPECT_EQ(gate.layers[0].SmallestGroup(), 2u);
  EXPECT_EQ(gate.LeastLooked(1), 1u);
  EXPECT_EQ(gate.LeastLooked(2), 1u);
  EXPECT_EQ(gate.LeastLooked(3), 2u);
}

TEST(GroupGate, WhatDoesNotFitTogetherIsNamedWithItsLayer) {
  ASSERT_TRUE(Validate(TwoLayers()).ok());
  const auto message = [](auto change) {
    GroupGate gate = TwoLayers();
    change(gate);
    return Validate(gate).message();
  };
  EXPECT_THAT(message([](GroupGate& gate) { gate.groups = 1; }),
              HasSubstr("1 groups of 5 experts, 2 to 5 expected"));
  EXPECT_THAT(message([](GroupGate& gate) { gate.groups = 3; }),
              HasSubstr("layer 1: 2 groups, 3 expected"));
  EXPECT_THAT(message([](GroupGate& gate) { gate.layers[1].weights.pop_back(); }),
              HasSubstr("layer 3: 3 weights and 2 biases, 4 and 2 expected"));
  EXPECT_THAT(message([](GroupGate& gate) { gate.layers[1].layer = 1; }),
              HasSubstr("layer 1 behind layer 1"));
  EXPECT_THAT(message([](GroupGate& gate) { gate.layers[0].groups[0][0] = 2; }),
              HasSubstr("layer 1: "));
  EXPECT_THAT(message([](GroupGate& gate) {
                gate.layers[0].bias[1] = std::numeric_limits<float>::quiet_NaN();
              }),
              HasSubstr("not finite"));
}

TEST(GateChoice, IsWrittenAsTheOptionTakesIt) {
  EXPECT_EQ(ToString(GateChoice{}), "exact");
  EXPECT_EQ(ToString(GateChoice{.by_groups = true}), "groups");
  EXPECT_EQ(ToString(GateChoice{.by_groups = true, .looked = 2, .fusion = GroupFusion::kProduct}),
            "groups:looked=2:fusion=product");
}

}  // namespace
}  // namespace troupe
