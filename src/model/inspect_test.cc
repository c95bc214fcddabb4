#include "model/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "forge/synth.h"
#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

GgufModel Synth(const TempFolder& folder, const ModelShape& shape, TensorType type) {
  const std::string path = folder.PathOf("m.gguf");
  EXPECT_TRUE(Synthesize(shape, {.layout = {.mix = {.type = type}}}, path).ok());
  return GgufModel::Open(path).value();
}

Bytes Floats(std::uint64_t count) { return Bytes(4 * count); }
Bytes Halves(std::uint64_t count) { return Bytes(2 * count); }

TEST(InspectModel, AddsUpAModelOfExperts) {
  const TempFolder folder;
  const GgufModel model = Synth(folder, *FindShape("tiny-qwen2moe"), TensorType::kF16);
  const Result<ModelFacts> facts = InspectModel(model);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  // Width 256, 4 heads on 2 of 64, 8 experts of 256, a shared one of 512, 512 tokens.
  ASSERT_EQ(facts->layers.size(), 2u);
  const LayerBytes& layer = facts->layers[1];
  EXPECT_EQ(layer.attention, Halves(256 * (256 + 128 + 128 + 256)) + Floats(256 + 128 + 128));
  EXPECT_EQ(layer.experts, Halves(8 * 3 * 256 * 256));
  EXPECT_EQ(layer.dense, Halves(3 * 256 * 512));
  EXPECT_EQ(layer.router, Floats(8 * 256 + 256));
  EXPECT_EQ(layer.norms, Floats(2 * 256));
  EXPECT_EQ(facts->embedding, Halves(256 * 512));
  EXPECT_EQ(facts->output, Halves(256 * 512) + Floats(256));
  EXPECT_EQ(facts->LargestExpert(), Halves(3 * 256 * 256));
  EXPECT_EQ(facts->Dense() + facts->Experts(), model.tensor_bytes());
  // Of 8 experts 4 are read, of the embedding one row.
  EXPECT_EQ(facts->TouchedPerToken(),
            facts->output + Halves(256) + 2 * (layer.Total() - Halves(4 * 3 * 256 * 256)));
}

TEST(InspectModel, AddsUpBlocksOfOnePartToTheLayersTheyAre) {
  const TempFolder folder;
  const GgufModel model = Synth(folder, *FindShape("tiny-nemotron_h_moe"), TensorType::kF16);
  const ModelFacts facts = InspectModel(model).value();
  ASSERT_EQ(facts.layers.size(), 4u);
  for (const LayerBytes& layer : facts.layers) {
    EXPECT_EQ(layer.experts, Halves(8 * 2 * 256 * 256));
    EXPECT_EQ(layer.router, Floats(8 * 256 + 8));
  }
  // Of Mamba-2 and attention; of attention alone. Width 256, 4 heads on 2 of 64.
  EXPECT_EQ(facts.layers[2].attention, Halves(256 * (256 + 128 + 128 + 256)));
  EXPECT_EQ(facts.layers[1].attention, facts.layers[0].attention + facts.layers[2].attention);
  EXPECT_EQ(facts.layers[1].norms, facts.layers[0].norms + Floats(256));
  EXPECT_EQ(facts.KvPerToken(KvType::kF16), Halves(2 * 2 * 2 * 64));
  EXPECT_EQ(facts.Dense() + facts.Experts(), model.tensor_bytes());
}

TEST(InspectModel, CountsTheContextAsTheCacheLaysItOut) {
  const TempFolder folder;
  const ModelFacts facts =
      InspectModel(Synth(folder, *FindShape("tiny-qwen2moe"), TensorType::kQ4_0)).value();
  // Two layers, keys and values of 2 heads of 64; q8_0 adds a half for every 32.
  EXPECT_EQ(facts.KvPerToken(KvType::kF16), Halves(2 * 2 * 2 * 64));
  EXPECT_EQ(facts.KvPerToken(KvType::kQ8_0), Bytes(2 * 2 * 2 * 2 * 34));
}

TEST(InspectModel, CountsOneLatentRowOfKeysForMla) {
  const TempFolder folder;
  const ModelFacts facts =
      InspectModel(Synth(folder, *FindShape("tiny-deepseek2"), TensorType::kQ4_0)).value();
  EXPECT_EQ(facts.KvPerToken(KvType::kF16), Halves(3 * (256 + 64)));
  EXPECT_EQ(facts.layers[0].experts, Bytes());  // the leading dense layer
  EXPECT_GT(facts.layers[1].experts, Bytes());
}

TEST(InspectModel, CountsStatesOfSequencesAndWhatIsLeftOut) {
  const TempFolder folder;
  const GgufModel model = Synth(folder, *FindShape("tiny-qwen35moe"), TensorType::kF16);
  const ModelFacts facts = InspectModel(model).value();
  // One of four layers has keys and values, of 2 heads of 64.
  EXPECT_EQ(facts.KvPerToken(KvType::kF16), Halves(2 * 2 * 64));
  // The others: 4 matrices of 64 x 64, and 3 inputs of 512 channels; each twice.
  EXPECT_EQ(facts.StatePerSequence(), 2 * 3 * Floats(4 * 64 * 64 + 3 * 512));
  EXPECT_EQ(facts.layers.size(), 4u);
  EXPECT_GT(facts.left_out, Bytes());
  EXPECT_EQ(facts.Dense() + facts.Experts() + facts.left_out, model.tensor_bytes());
}

TEST(InspectModel, ReadsATiedEmbeddingAsAWhole) {
  const TempFolder folder;
  ModelShape shape = *FindShape("tiny-llama");
  shape.tied_embedding = true;
  const ModelFacts facts = InspectModel(Synth(folder, shape, TensorType::kF16)).value();
  EXPECT_TRUE(facts.tied_output);
  EXPECT_EQ(facts.output, Floats(256));
  EXPECT_EQ(facts.TouchedPerToken(), facts.Dense());
  EXPECT_EQ(facts.Experts(), Bytes());
}

TEST(InspectModel, SharesAllBytesOutByType) {
  const TempFolder folder;
  const GgufModel model = Synth(folder, *FindShape("tiny-olmoe"), TensorType::kQ4_K);
  const ModelFacts facts = InspectModel(model).value();
  ASSERT_EQ(facts.types.size(), 2u);
  EXPECT_EQ(facts.types[0].type, TensorType::kQ4_K);  // the most bytes first
  EXPECT_EQ(facts.types[1].type, TensorType::kF32);
  EXPECT_EQ(facts.types[0].bytes + facts.types[1].bytes, model.tensor_bytes());
  EXPECT_EQ(facts.types[0].tensors + facts.types[1].tensors, model.tensors().size());
}

TEST(InspectModel, RefusesATensorOfALayerThatIsNot) {
  const TempFolder folder;
  Metadata metadata = MetadataOf(*FindShape("tiny-llama"), {});
  const TensorSpec spec("blk.2.attn_norm.weight", TensorType::kF32, {1});
  GgufWriter writer = GgufWriter::Create(folder.PathOf("m"), metadata, {&spec, 1}).value();
  ASSERT_TRUE(writer.Append(spec.name, std::vector<std::byte>(4)).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const Result<ModelFacts> facts = InspectModel(GgufModel::Open(folder.PathOf("m")).value());
  EXPECT_EQ(facts.status().code(), Code::kDataLoss);
  EXPECT_THAT(facts.status().message(),
              ::testing::HasSubstr("tensor 'blk.2.attn_norm.weight' is of layer 2"));
}

}  // namespace
}  // namespace troupe
