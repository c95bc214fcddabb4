#include "forge/tensor_mix.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

TEST(FittingType, KeepsATypeWhoseBlocksFit) {
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    EXPECT_EQ(FittingType(info.type, 512), info.type) << info.name;
  }
}

TEST(FittingType, FallsToSmallBlocksOfNoLessPrecision) {
  EXPECT_EQ(FittingType(TensorType::kQ2_K, 64), TensorType::kQ4_0);
  EXPECT_EQ(FittingType(TensorType::kQ3_K, 64), TensorType::kQ4_0);
  EXPECT_EQ(FittingType(TensorType::kQ4_K, 1408), TensorType::kQ5_0);
  EXPECT_EQ(FittingType(TensorType::kQ5_K, 1408), TensorType::kQ5_1);
  EXPECT_EQ(FittingType(TensorType::kQ6_K, 1408), TensorType::kQ8_0);
}

TEST(FittingType, FitsEveryTypeToEveryWidth) {
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    for (const std::uint64_t columns : {1, 7, 31, 32, 33, 96, 128, 255, 256, 288}) {
      const TensorType fitting = FittingType(info.type, columns);
      EXPECT_EQ(columns % Info(fitting).block_elems, 0u) << info.name << " at " << columns;
    }
  }
}

TEST(TensorMix, LeavesNormsRoutersAndBiasesAlone) {
  const TensorType any = TensorType::kF32;
  EXPECT_TRUE(IsQuantizable({"blk.0.ffn_gate_exps.weight", any, {256, 64, 8}}));
  EXPECT_TRUE(IsQuantizable({"blk.0.attn_q.weight", any, {256, 256}}));
  EXPECT_TRUE(IsQuantizable({"token_embd.weight", any, {256, 512}}));
  EXPECT_FALSE(IsQuantizable({"blk.0.ffn_gate_inp.weight", any, {256, 8}}));
  EXPECT_FALSE(IsQuantizable({"blk.0.attn_norm.weight", any, {256}}));
  EXPECT_FALSE(IsQuantizable({"blk.0.attn_q_norm.weight", any, {64, 4}}));
  EXPECT_FALSE(IsQuantizable({"blk.0.ffn_gate_inp_shexp.weight", any, {256}}));
  EXPECT_FALSE(IsQuantizable({"blk.0.attn_q.bias", any, {256}}));
}

TEST(TensorMix, GivesEmbeddingAndOutputTheirOwnTypes) {
  const TensorMix mix{
      .type = TensorType::kQ4_K, .embedding = TensorType::kQ8_0, .output = TensorType::kQ6_K};
  EXPECT_EQ(mix.TypeFor({"token_embd.weight", TensorType::kF32, {256, 512}}), TensorType::kQ8_0);
  EXPECT_EQ(mix.TypeFor({"output.weight", TensorType::kF32, {256, 512}}), TensorType::kQ6_K);
  EXPECT_EQ(mix.TypeFor({"output.weight", TensorType::kF32, {96, 512}}), TensorType::kQ8_0);
  EXPECT_EQ(mix.TypeFor({"blk.0.attn_q.weight", TensorType::kF32, {256, 256}}), TensorType::kQ4_K);
}

TEST(TensorMix, NumbersEveryTypeDifferently) {
  std::set<std::uint32_t> numbers;
  for (const TensorTypeInfo& info : AllTensorTypes()) numbers.insert(FileTypeNumber(info.type));
  EXPECT_EQ(numbers.size(), AllTensorTypes().size());
}

}  // namespace
}  // namespace troupe
