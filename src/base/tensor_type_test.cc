#include "base/tensor_type.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(TensorType, EveryTypeIsFoundByNumberAndByName) {
  EXPECT_EQ(AllTensorTypes().size(), 24u);
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    EXPECT_EQ(FindTensorType(static_cast<std::uint32_t>(info.type)), &info);
    EXPECT_EQ(TensorTypeByName(info.name), info.type);
  }
  EXPECT_EQ(TensorTypeByName("q4_k"), TensorType::kQ4_K);
}

TEST(TensorType, UnknownNumbersAndNamesAreNotFound) {
  EXPECT_EQ(FindTensorType(4), nullptr);  // removed from GGUF long ago
  EXPECT_EQ(FindTensorType(31), nullptr);
  EXPECT_EQ(FindTensorType(~0u), nullptr);
  EXPECT_FALSE(TensorTypeByName("Q4").has_value());
  EXPECT_FALSE(TensorTypeByName("").has_value());
}

TEST(TensorType, TypesThatAreNotReadHaveTheNamesThatFilesGoBy) {
  EXPECT_EQ(UnreadTypeName(34), "TQ1_0");
  EXPECT_EQ(UnreadTypeName(41), "Q1_0");
  EXPECT_EQ(UnreadTypeName(77), "");
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    EXPECT_EQ(UnreadTypeName(static_cast<std::uint32_t>(info.type)), "") << info.name;
  }
}

TEST(TensorType, RowBytesCountWholeBlocks) {
  EXPECT_EQ(RowBytes(TensorType::kF32, 3), 12_B);
  EXPECT_EQ(RowBytes(TensorType::kQ4_0, 64), 36_B);
  EXPECT_EQ(RowBytes(TensorType::kQ6_K, 512), 420_B);
}

TEST(TensorTypeDeathTest, ARowThatEndsInsideABlockIsABug) {
  EXPECT_DEATH((void)RowBytes(TensorType::kQ4_0, 33), "broken invariant");
}

}  // namespace
}  // namespace troupe
