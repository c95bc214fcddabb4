#include "forge/synth_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "quant/dequantize.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Method = WeightSource::Method;

SynthTensor Tensor(std::string name, TensorType type, std::initializer_list<std::uint64_t> dims,
                   double deviation = 1.0, double mean = 0.0) {
  return {TensorSpec(std::move(name), type, dims), mean, deviation};
}

std::vector<std::byte> Generate(WeightSource& source, const SynthTensor& tensor) {
  std::vector<std::byte> all;
  const Status status = source.Generate(tensor, [&](std::span<const std::byte> bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return OkStatus();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(Bytes(all.size()), SizeOfTensor(tensor.spec).value());
  return all;
}

std::vector<std::byte> Generate(const SynthTensor& tensor, Method method, std::uint64_t seed = 1,
                                std::size_t thread_count = 1) {
  ThreadPool threads(thread_count);
  WeightSource source(seed, method, threads);
  return Generate(source, tensor);
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments MomentsOf(const SynthTensor& tensor, std::span<const std::byte> bytes) {
  std::vector<float> floats(tensor.spec.ElementCount());
  DequantizeRow(tensor.spec.type, bytes, floats);
  double sum = 0, squares = 0;
  for (const float x : floats) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const auto n = static_cast<double>(floats.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

TEST(DrawBell, HasMeanZeroVarianceOneAndGaussianTails) {
  Rng rng(TestSeed());
  constexpr int kDraws = 1 << 20;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = DrawBell(rng);
    ASSERT_LT(std::fabs(x), 4.9);
    sum += x;
    squares += x * x;
    beyond_two += std::fabs(x) > 2;
  }
  // Five standard errors: of a mean 1/sqrt(n), of a variance below sqrt(2/n).
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  // A Gaussian has 4.55 % beyond two deviations; the sum of eight uniforms 4.63 %.
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0459, 0.003);
}

class WeightsInEveryType : public ::testing::TestWithParam<TensorType> {};

TEST_P(WeightsInEveryType, HasTheMomentsAskedForEitherWay) {
  // 2^17 weights: five standard errors of a mean are 0.014 deviations, of a deviation 0.01. Two-bit
  // codes keep all but a tenth of the deviation.
  const SynthTensor tensor = Tensor("blk.0.attn_q.weight", GetParam(), {1024, 128}, 0.03);
  for (const Method method : {Method::kDrawEach, Method::kFromPool}) {
    const Moments moments = MomentsOf(tensor, Generate(tensor, method));
    EXPECT_NEAR(moments.mean, 0, 0.03 * 0.015);
    EXPECT_NEAR(moments.deviation, 0.03, 0.03 * 0.1);
  }
}

TEST_P(WeightsInEveryType, IsTheSameForAnyNumberOfThreads) {
  const SynthTensor tensor = Tensor("blk.0.attn_q.weight", GetParam(), {768, 300});
  for (const Method method : {Method::kDrawEach, Method::kFromPool}) {
    const std::vector<std::byte> one = Generate(tensor, method, 7, 1);
    EXPECT_EQ(one, Generate(tensor, method, 7, 3));
    EXPECT_NE(one, Generate(tensor, method, 8, 1));
  }
}

std::vector<TensorType> TypesToSynthesise() {
  std::vector<TensorType> types;
  for (const TensorTypeInfo& type : AllTensorTypes()) types.push_back(type.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, WeightsInEveryType, ::testing::ValuesIn(TypesToSynthesise()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(WeightSource, GivesATensorTheSameBytesWhateverCameBefore) {
  const SynthTensor a = Tensor("blk.0.attn_q.weight", TensorType::kQ4_0, {64, 64});
  const SynthTensor b = Tensor("blk.1.attn_q.weight", TensorType::kQ4_0, {64, 64});
  ThreadPool threads(1);
  for (const Method method : {Method::kDrawEach, Method::kFromPool}) {
    WeightSource source(1, method, threads);
    const std::vector<std::byte> first = Generate(source, a);
    EXPECT_NE(first, Generate(source, b));
    EXPECT_EQ(first, Generate(source, a));
  }
}

TEST(WeightSource, DrawsTheSameModelInEveryType) {
  const SynthTensor exact = Tensor("blk.0.attn_q.weight", TensorType::kF32, {256, 8});
  const SynthTensor coarse = Tensor("blk.0.attn_q.weight", TensorType::kQ8_0, {256, 8});
  std::vector<float> a(256 * 8), b(256 * 8);
  DequantizeRow(TensorType::kF32, Generate(exact, Method::kDrawEach), a);
  DequantizeRow(TensorType::kQ8_0, Generate(coarse, Method::kDrawEach), b);
  // Half a step of Q8_0: a block's largest, below 4.9, over 127; and its scale rounds to a half.
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 4.9 / 127 * (0.5 + 0.07));
}

TEST(WeightSource, DrawsNormsAboutTheirMeanEvenWhenItUsesAPool) {
  const SynthTensor norm = Tensor("blk.0.attn_norm.weight", TensorType::kF32, {4096}, 0.1, 1.0);
  const Moments moments = MomentsOf(norm, Generate(norm, Method::kFromPool));
  EXPECT_NEAR(moments.mean, 1.0, 5 * 0.1 / 64);
  EXPECT_NEAR(moments.deviation, 0.1, 0.01);
}

TEST(WeightSource, HasNoBlockInCommonBetweenPools) {
  const auto blocks_of = [](double deviation) {
    // Half precision keeps a block's shape at any scale: compare signs.
    const SynthTensor tensor = Tensor("a.weight", TensorType::kF16, {32, 4096}, deviation);
    std::vector<float> floats(tensor.spec.ElementCount());
    DequantizeRow(TensorType::kF16, Generate(tensor, Method::kFromPool), floats);
    std::set<std::uint32_t> signs;
    for (std::size_t i = 0; i < floats.size(); i += 32) {
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < 32; ++k) bits |= std::uint32_t{floats[i + k] < 0} << k;
      signs.insert(bits);
    }
    return signs;
  };
  const std::set<std::uint32_t> a = blocks_of(4.0), b = blocks_of(0.25);
  std::vector<std::uint32_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  EXPECT_GT(a.size(), 3000u);    // 4096 picks of 32768 blocks
  EXPECT_LT(common.size(), 3u);  // 4096^2 pairs of 32 random bits meet 0.004 times
}

TEST(WeightSource, StopsWhenItsSinkFails) {
  ThreadPool threads(1);
  for (const Method method : {Method::kDrawEach, Method::kFromPool}) {
    WeightSource source(1, method, threads);
    int calls = 0;
    const Status status =
        source.Generate(Tensor("blk.0.attn_q.weight", TensorType::kF32, {1024, 4096}),
                        [&](std::span<const std::byte>) {
                          ++calls;
                          return Error(Code::kResourceExhausted, "full");
                        });
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_EQ(calls, 1);
  }
}

}  // namespace
}  // namespace troupe
