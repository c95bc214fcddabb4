#include "runtime/expert_host.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

class ExpertHostTest : public testing::TestWithParam<TensorType> {
 protected:
  ExpertHostTest() : model_("tiny-olmoe", GetParam()), part_(model_, model_.AllLayers()) {}

  const Mlp& Expert(std::uint32_t layer, std::uint32_t expert) const {
    return part_.weights().layers[layer].moe.experts[expert];
  }

  TinyModel model_;
  ModelPart part_;
};

TEST_P(ExpertHostTest, GivesTheBytesOfAPassForMoreRowsThanItComputesTogether) {
  const ModelConfig& config = model_.config();
  const std::size_t rows = 2 * ExpertHost::kRowsTogether + 3;
  Rng rng(TestSeed());
  std::vector<float> values(rows * config.width);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  std::vector<std::byte> codes(ActivationBytes(rows, config.width));
  const Activations input = MakeActivations(values.data(), config.width, rows, config.width, codes);
  QuantizeRows(input, part_.threads());
  std::vector<std::uint32_t> which;
  for (std::uint32_t row = 0; row < rows; ++row) which.push_back((row * 7) % rows);

  std::vector<float> expected(rows * config.width), out(expected.size());
  ExpertMlp mlp = ExpertMlp::Create(config.moe.expert_ff, rows).value();
  mlp.Run(Expert(1, 3), input, which, expected, part_.threads());

  HeldExperts held({.layers = config.layers, .experts = config.moe.routing.experts});
  held.Add({1, 3}, Expert(1, 3));
  const auto host = ExpertHost::Create(held, config.moe.expert_ff, 2).value();
  ASSERT_TRUE(host->Compute({1, 3}, input, which, out).ok());
  EXPECT_EQ(out, expected);

  // Where codes are all that is multiplied, they are all that need be sent.
  if (!ReadsCodesAlone(Expert(1, 3).gate.type, Expert(1, 3).up.type)) return;
  Activations without = input;
  without.values = nullptr;
  ASSERT_TRUE(host->Compute({1, 3}, without, which, out).ok());
  EXPECT_EQ(out, expected);
}

TEST_P(ExpertHostTest, AnExpertThatIsNotHeldIsRefused) {
  const ModelConfig& config = model_.config();
  HeldExperts held({.layers = config.layers, .experts = config.moe.routing.experts});
  const auto host = ExpertHost::Create(held, config.moe.expert_ff, 1).value();
  std::vector<float> values(config.width), out(config.width);
  const Activations input = MakeActivations(values.data(), config.width, 1, config.width, {});
  const std::uint32_t row = 0;
  EXPECT_EQ(host->Compute({0, 1}, input, {&row, 1}, out).code(), Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertHostTest,
                         testing::Values(TensorType::kQ4_0, TensorType::kQ6_K, TensorType::kF16),
                         [](const auto& type) { return std::string(Name(type.param)); });

}  // namespace
}  // namespace troupe
