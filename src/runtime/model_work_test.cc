#include "runtime/model_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/pack_model.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::SizeIs;

constexpr char kTiny[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

PlannedModel Plan(const std::string& container) {
  EngineOptions options{.context = 128, .memory = 4_GiB};
  options.offload.slots = 40;
  options.offload.container = container;
  return PlanModel(kTiny, options).value();
}

TEST(ModelWorkTest, LayersOfOneShapeAreOneKind) {
  const PlannedModel model = Plan("none");
  const ModelWork work = WorkOf(model);
  ASSERT_THAT(work.experts, SizeIs(1));
  EXPECT_EQ(work.experts[0].layers, 8u);
  EXPECT_EQ(work.experts_per_layer, 32u);
  EXPECT_EQ(work.experts_per_token, 4u);
  EXPECT_EQ(work.experts[0].shape, work.like);
  EXPECT_THAT(DistinctShapes(model.file, model.measure.experts), SizeIs(1));
}

TEST(ModelWorkTest, AShapesKeyNamesItsTypesAndSizes) {
  ExpertLayout layout;
  layout.matrices = {
      {{.rows = 64, .cols = 256}, {.rows = 64, .cols = 256}, {.rows = 256, .cols = 64}}};
  EXPECT_EQ(ShapeKey(layout.In({TensorType::kQ4_K, TensorType::kQ4_K, TensorType::kQ8_0})),
            "Q4_K 64x256, Q4_K 64x256, Q8_0 256x64");
  layout.matrices[1].rows = 0;
  EXPECT_EQ(ShapeKey(layout.In({TensorType::kQ4_K, TensorType::kQ4_K, TensorType::kQ8_0})),
            "Q4_K 64x256, Q8_0 256x64");
}

TEST(ModelWorkTest, DenseWorkHeadAndEmbeddingAreAllThatIsNoExpert) {
  const PlannedModel model = Plan("none");
  const ModelWork work = WorkOf(model);
  const Bytes embedding = model.facts.tied_output ? Bytes() : model.facts.embedding;
  EXPECT_EQ(work.dense + work.head + embedding, model.measure.bytes.dense);
  EXPECT_GT(work.dense, Bytes());
  EXPECT_GT(work.head, Bytes());
}

TEST(ModelWorkTest, TheModelFileIsReadInThreePiecesAndAContainerInOne) {
  const TempFolder folder;
  const GgufModel file = GgufModel::Open(kTiny).value();
  const std::string container = folder.PathOf("tiny.experts");
  ASSERT_TRUE(PackModel(file, {}, container).ok());

  const LoadShape packed = WorkOf(Plan(container)).experts[0].load;
  EXPECT_EQ(packed.extents, 1u);
  const LoadShape in_place = WorkOf(Plan("none")).experts[0].load;
  EXPECT_EQ(in_place.extents, 3u);
  const Bytes expert = WorkOf(Plan("none")).experts[0].bytes;
  for (const LoadShape& load : {packed, in_place}) {
    EXPECT_EQ(load.bytes.count() % 4096, 0u);
    EXPECT_GE(load.bytes, expert);
    EXPECT_LE(load.bytes, expert + 3 * 2 * 4_KiB);
  }
}

}  // namespace
}  // namespace troupe
