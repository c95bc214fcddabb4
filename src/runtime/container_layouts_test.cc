#include "runtime/container_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace troupe {
namespace {

using ::testing::HasSubstr;

TensorInfo Tensor(TensorType type, std::uint64_t cols, std::uint64_t rows) {
  TensorInfo tensor;
  static_cast<TensorSpec&>(tensor) = TensorSpec("x.weight", type, {cols, rows, 3});
  return tensor;
}

// A dense layer, then two of three experts each; F16 and, in the lower precision, Q4_0.
class ContainerLayoutsTest : public ::testing::Test {
 protected:
  ContainerLayoutsTest() {
    for (const TensorType type : {TensorType::kF16, TensorType::kQ4_0}) {
      std::vector<ContainerLayer>& layers = index_.precisions.emplace_back();
      for (const std::uint32_t layer : {1u, 2u}) {
        layers.push_back({.layer = layer,
                          .types = {type, type, type},
                          .expert_bytes = model_[layer].In({type, type, type}).SlotBytes(),
                          .offset = 0,
                          .checksums = {}});
      }
    }
  }

  void ExpectError(const std::string& words, const std::function<void()>& change) {
    const ContainerIndex whole = index_;
    change();
    const Status status = LayoutsIn(index_, 1, model_, "c.experts").status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("c.experts: " + words));
    index_ = whole;
  }

  const TensorInfo gate_ = Tensor(TensorType::kF16, 64, 96), up_ = gate_;
  const TensorInfo down_ = Tensor(TensorType::kF16, 96, 64);
  const ExpertLayout layer_ = ExpertLayout::For(gate_, up_, down_);
  const ExpertLayouts model_ = {ExpertLayout(), layer_, layer_};
  ContainerIndex index_ = {.model = {}, .panel_layout = 1, .experts = 3, .precisions = {}};
};

TEST_F(ContainerLayoutsTest, GivesTheModelsLayoutsInTheContainersTypes) {
  for (const std::size_t precision : {0, 1}) {
    const Result<ExpertLayouts> layouts = LayoutsIn(index_, precision, model_, "c.experts");
    ASSERT_TRUE(layouts.ok()) << layouts.status().ToString();
    ASSERT_EQ(layouts->size(), 3u);
    EXPECT_EQ((*layouts)[0].SlotBytes(), 0u);
    for (const ContainerLayer& layer : index_.precisions[precision]) {
      EXPECT_EQ((*layouts)[layer.layer].SlotBytes(), layer.expert_bytes);
      EXPECT_EQ((*layouts)[layer.layer].matrices[2].type, layer.types[2]);
      EXPECT_EQ((*layouts)[layer.layer].matrices[2].rows, 64u);
    }
  }
}

TEST_F(ContainerLayoutsTest, RefusesWhatDoesNotFitTheModel) {
  std::vector<ContainerLayer>& low = index_.precisions[1];
  ExpectError("layer 1: 4 experts, 3 expected", [&] { index_.experts = 4; });
  ExpectError("the experts of layer 2 are missing", [&] { low.pop_back(); });
  ExpectError("the experts of layer 1 are missing", [&] { low[0].layer = 0; });
  ExpectError("experts of layer 7, which has none", [&] {
    low.push_back(low[1]);
    low[2].layer = 7;
  });
  ExpectError("layer 2: type Q4_K for rows of 64", [&] { low[1].types[0] = TensorType::kQ4_K; });
  // A byte more than fits the slot is the one that would be written past its end.
  ExpectError(fmt::format("layer 2: experts of {} bytes", low[1].expert_bytes + 1),
              [&] { ++low[1].expert_bytes; });
}

}  // namespace
}  // namespace troupe
