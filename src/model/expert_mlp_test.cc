#include "model/expert_mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "kernels/quantize_activations.h"
#include "model/switch_model_for_test.h"
#include "model/tiny_model_for_test.h"
#include "quant/exp_reference.h"
#include "quant/panel_reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Floats and, where they have one, their 8-bit form.
struct Input {
  Input(std::vector<float> all, std::size_t cols)
      : values(std::move(all)), codes(ActivationBytes(values.size() / cols, cols)) {
    x = MakeActivations(values.data(), cols, values.size() / cols, cols, codes);
    for (std::size_t row = 0; row < x.tokens; ++row) QuantizeActivationsReference(x, row);
  }
  std::vector<float> values;
  std::vector<std::byte> codes;
  Activations x;
};

float Product(const PanelMatrix& w, std::size_t row, const Activations& x, std::size_t token) {
  std::vector<std::byte> bytes(RowBytes(w.type, w.cols).count());
  UnpackRow(w, row, bytes);
  return PanelDotReference(w.type, bytes, x, token);
}

std::vector<float> Reference(const Mlp& expert, const Activations& x, std::size_t token) {
  std::vector<float> hidden;
  for (std::size_t i = 0; i < expert.gate.rows; ++i) {
    const float gate = Product(expert.gate, i, x, token);
    hidden.push_back(gate * SigmoidReference(gate) * Product(expert.up, i, x, token));
  }
  const Input second(hidden, hidden.size());
  std::vector<float> out;
  for (std::size_t i = 0; i < expert.down.rows; ++i) {
    out.push_back(Product(expert.down, i, second.x, 0));
  }
  return out;
}

TEST(ExpertMlp, HasTheBitsOfItsReferenceForAnyRowsInAnyOrder) {
  const TinyModel model("tiny-olmoe", TensorType::kQ6_K);
  ModelPart part(model, model.AllLayers());
  const ModelConfig& config = model.config();
  const Mlp& expert = part.weights().layers[1].moe.experts[3];
  Rng rng(TestSeed());
  std::vector<float> values(7 * config.width);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  const Input input(values, config.width);
  ExpertMlp mlp = ExpertMlp::Create(config.moe.expert_ff, 8).value();
  const std::vector<std::vector<std::uint32_t>> choices = {{4}, {6, 0, 2}, {0, 1, 2, 3, 4, 5, 6}};
  for (const std::vector<std::uint32_t>& rows : choices) {
    std::vector<float> out(rows.size() * config.width);
    mlp.Run(expert, input.x, rows, out, part.threads());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto begin = out.begin() + static_cast<std::ptrdiff_t>(i * config.width);
      EXPECT_EQ(std::vector<float>(begin, begin + config.width),
                Reference(expert, input.x, rows[i]))
          << "row " << rows[i] << " of " << rows.size();
    }
  }
}

TEST(ExpertMlp, WithoutAGateItsFirstMatrixGoesThroughRelu) {
  const TinyModel model([](const std::string& path) { TinySwitch::Write(path); });
  ModelPart part(model, model.AllLayers());
  const ModelConfig& config = model.config();
  const Mlp& expert = part.weights().layers[1].moe.experts[2];
  ASSERT_EQ(expert.gate.rows, 96u);
  ASSERT_EQ(expert.up.rows, 0u);
  ASSERT_EQ(expert.down.cols, 96u);
  Rng rng(TestSeed());
  std::vector<float> values(3 * config.width);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  const Input input(values, config.width);
  ExpertMlp mlp = ExpertMlp::Create(config.moe.expert_ff, 3).value();
  const std::vector<std::uint32_t> rows = {2, 0};
  std::vector<float> out(rows.size() * config.width);
  mlp.Run(expert, input.x, rows, out, part.threads());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<float> hidden;
    for (std::size_t row = 0; row < expert.gate.rows; ++row) {
      const float product = Product(expert.gate, row, input.x, rows[i]);
      hidden.push_back(product < 0 ? 0.0f : product);
    }
    EXPECT_GT(std::ranges::count(hidden, 0.0f), 10);
    const Input second(hidden, hidden.size());
    for (std::size_t row = 0; row < config.width; ++row) {
      ASSERT_EQ(out[i * config.width + row], Product(expert.down, row, second.x, 0)) << row;
    }
  }
}

}  // namespace
}  // namespace troupe
