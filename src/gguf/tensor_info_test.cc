#include "gguf/tensor_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(SizeOfTensor, CountsWholeBlocks) {
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kF32, {3, 5}}).value(), Bytes(60));
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kQ8_0, {64, 10, 2}}).value(), Bytes(40 * 34));
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kQ4_K, {512, 1, 1, 3}}).value(), Bytes(6 * 144));
}

TEST(SizeOfTensor, AScalarHasNoDimensionsAndOneElement) {
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kF32, {}}).value(), Bytes(4));
}

TEST(SizeOfTensor, RefusesRowsThatCutABlock) {
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kQ8_0, {48, 2}}).status().message(),
            "rows of 48 elements, a multiple of 32 expected for Q8_0");
}

TEST(SizeOfTensor, RefusesEmptyDimensions) {
  EXPECT_THAT(SizeOfTensor({"t", TensorType::kF32, {4, 0}}).status().message(),
              HasSubstr("dimension 1 is 0"));
}

TEST(SizeOfTensor, RefusesProductsThatWouldWrap) {
  const std::uint64_t big = std::uint64_t{1} << 32;
  EXPECT_THAT(SizeOfTensor({"t", TensorType::kF32, {big, big}}).status().message(),
              HasSubstr("2^64 elements"));
  EXPECT_THAT(SizeOfTensor({"t", TensorType::kF32, {big, big / 4}}).status().message(),
              HasSubstr("2^64 bytes"));
  EXPECT_EQ(SizeOfTensor({"t", TensorType::kF32, {big, big / 8}}).value(),
            Bytes(std::uint64_t{1} << 63));
}

TEST(SizeOfTensor, RefusesARankThatContradictsTheDimensions) {
  TensorSpec spec("t", TensorType::kF32, {4, 5});
  spec.rank = 1;
  EXPECT_THAT(SizeOfTensor(spec).status().message(), HasSubstr("dimension 1 is 5"));
  spec.rank = 5;
  EXPECT_THAT(SizeOfTensor(spec).status().message(), HasSubstr("at most 4"));
}

TEST(TensorSpec, ShowsItsShape) {
  EXPECT_EQ(DescribeShape({"t", TensorType::kF32, {128, 64, 32}}), "[128, 64, 32]");
  EXPECT_EQ((TensorSpec{"t", TensorType::kF32, {128, 64, 32}}.ElementCount()), 128u * 64 * 32);
}

}  // namespace
}  // namespace troupe
