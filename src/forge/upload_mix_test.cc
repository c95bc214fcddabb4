#include "forge/upload_mix.h"

#include <gtest/gtest.h>

#include <map>

#include "forge/synth_layout.h"

namespace troupe {
namespace {

using Counts = std::map<TensorType, int>;

std::vector<SynthTensor> Upload(std::string_view shape, UploadMix mix) {
  return TensorsOf(*FindShape(shape), {.upload = mix});
}

Counts TypesIn(const std::vector<SynthTensor>& tensors) {
  Counts counts;
  for (const SynthTensor& tensor : tensors) ++counts[tensor.spec.type];
  return counts;
}

TensorType TypeIn(const std::vector<SynthTensor>& tensors, std::string_view name) {
  for (const SynthTensor& tensor : tensors) {
    if (tensor.spec.name == name) return tensor.spec.type;
  }
  ADD_FAILURE() << name << " is not there";
  return TensorType::kF32;
}

// As a loader counts them in gemma-4-26B-A4B-it-Q4_K_M.gguf.
TEST(UploadMix, GivesGemmaTheTypesOfThePublishedFile) {
  EXPECT_EQ(TypesIn(Upload("gemma-4-26b-a4b", UploadMix::kQ4KM)),
            (Counts{{TensorType::kF32, 392},
                    {TensorType::kQ5_0, 32},
                    {TensorType::kQ8_0, 28},
                    {TensorType::kQ4_K, 192},
                    {TensorType::kQ6_K, 14}}));
}

// As a loader counts them in gpt-oss-20b-mxfp4.gguf: 459 tensors.
TEST(UploadMix, GivesGptOssTheTypesOfThePublishedFile) {
  EXPECT_EQ(TypesIn(Upload("gpt-oss-20b", UploadMix::kMxfp4Moe)),
            (Counts{{TensorType::kF32, 289}, {TensorType::kQ8_0, 98}, {TensorType::kMXFP4, 72}}));
}

TEST(UploadMix, GivesMoreBitsToTheOutputAndToHalfOfTheDownMatrices) {
  const std::vector<SynthTensor> tensors = Upload("qwen3.6-35b-a3b", UploadMix::kQ4KM);
  EXPECT_EQ(TypeIn(tensors, "output.weight"), TensorType::kQ6_K);
  EXPECT_EQ(TypeIn(tensors, "token_embd.weight"), TensorType::kQ4_K);
  EXPECT_EQ(TypeIn(tensors, "blk.0.attn_qkv.weight"), TensorType::kQ5_K);
  EXPECT_EQ(TypeIn(tensors, "blk.0.ffn_down_exps.weight"), TensorType::kQ6_K);
  EXPECT_EQ(TypeIn(tensors, "blk.5.ffn_down_exps.weight"), TensorType::kQ4_K);
  EXPECT_EQ(TypeIn(tensors, "blk.39.ffn_down_shexp.weight"), TensorType::kQ6_K);
  EXPECT_EQ(TypeIn(tensors, "blk.0.ffn_gate_inp.weight"), TensorType::kF32);
}

TEST(UploadMix, TakesTheEmbeddingForTheOutputWhereItIs) {
  const std::vector<SynthTensor> tensors = Upload("lfm2-8b-a1b", UploadMix::kQ4KM);
  EXPECT_EQ(TypeIn(tensors, "token_embd.weight"), TensorType::kQ6_K);
}

TEST(UploadMix, FitsTheRowsOfEveryShape) {
  for (const std::string_view shape : ShapeNames()) {
    for (const std::string& mix : UploadMixNames()) {
      for (const SynthTensor& tensor : Upload(shape, *FindUploadMix(mix))) {
        EXPECT_TRUE(SizeOfTensor(tensor.spec).ok()) << shape << " " << tensor.spec.name;
      }
    }
  }
}

TEST(UploadMix, IsFoundByItsName) {
  for (const std::string& name : UploadMixNames()) {
    ASSERT_TRUE(FindUploadMix(name).has_value()) << name;
    EXPECT_EQ(Name(*FindUploadMix(name)), name);
  }
  EXPECT_FALSE(FindUploadMix("Q4_K").has_value());
}

}  // namespace
}  // namespace troupe
