#include "base/rng.h"
#include "gpu/device_copies.h"
#include "gpu/expert.h"
#include "gpu/gpu_for_test.h"
#include "quant/activations.h"
#include "quant/panel.h"
#include "quant/panel_reference.h"
#include "quant/random_rows.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct ExpertTypes {
  TensorType gate, up, down;
  GateForm form = GateForm::kSilu;
  bool bias = false;
};

// A matrix as a file has it; its panels lie in a slot with those of others.
struct StoredMatrix {
  TensorType type;
  std::uint32_t rows, cols;
  std::vector<std::byte> bytes;

  float Times(const Activations& x, std::size_t token, std::size_t row) const {
    const std::size_t row_bytes = bytes.size() / rows;
    return PanelDotReference(type, std::span(bytes).subspan(row * row_bytes, row_bytes), x, token);
  }
};

// An expert in a device's memory, and its answers by the scalar truth.
class ExpertOnBoth {
 public:
  ExpertOnBoth(GpuDevice& device, const ExpertTypes& types, std::uint32_t width, std::uint32_t ff,
               Rng& rng)
      : types_(types) {
    std::vector<std::byte> slot;
    const auto matrix = [&](TensorType type, std::uint32_t rows, std::uint32_t cols) {
      stored_.push_back({type, rows, cols, RandomRows(type, rows, cols, rng)});
      const std::size_t at = slot.size();
      slot.resize(at + PanelBytes(type, rows, cols));
      PackPanels(type, rows, cols, stored_.back().bytes, std::span(slot).subspan(at));
      return GpuMatrix{type, rows, cols, nullptr, at};
    };
    mlp_.gate = matrix(types.gate, ff, width);
    mlp_.up = matrix(types.up, ff, width);
    mlp_.down = matrix(types.down, width, ff);
    slot_ = BufferWith(device, slot).value();
    mlp_.gate.memory = mlp_.up.memory = mlp_.down.memory = slot_.get();
    mlp_.form = types.form;
    biases_.resize(2 * ff + width);
    for (float& bias : biases_) bias = static_cast<float>(rng.Normal());
    device_biases_ = BufferWith(device, std::as_bytes(std::span(biases_))).value();
    if (types.bias) {
      mlp_.gate_bias = {device_biases_.get(), 0};
      mlp_.up_bias = {device_biases_.get(), ff};
      mlp_.down_bias = {device_biases_.get(), 2 * ff};
    }
  }

  const GpuMlp& mlp() const { return mlp_; }

  std::vector<float> Reference(const Activations& x, std::size_t token) const {
    const std::size_t ff = stored_[0].rows;
    const auto with = [&](float product, std::size_t place) {
      return types_.bias ? product + biases_[place] : product;
    };
    std::vector<float> hidden, out;
    for (std::size_t i = 0; i < ff; ++i) {
      hidden.push_back(GateReference(types_.form, with(stored_[0].Times(x, token, i), i),
                                     with(stored_[1].Times(x, token, i), ff + i)));
    }
    std::vector<std::byte> codes(ff % 32 == 0 ? ActivationBytes(1, ff) : 0);
    const Activations second = MakeActivations(hidden.data(), ff, 1, ff, codes);
    if (!codes.empty()) QuantizeActivationsReference(second, 0);
    for (std::size_t i = 0; i < stored_[2].rows; ++i) {
      out.push_back(with(stored_[2].Times(second, 0, i), 2 * ff + i));
    }
    return out;
  }

 private:
  ExpertTypes types_;
  std::vector<StoredMatrix> stored_;
  GpuMlp mlp_;
  std::unique_ptr<GpuBuffer> slot_, device_biases_;
  std::vector<float> biases_;
};

class GpuExperts : public GpuTest {
 protected:
  void ExpectReference(const ExpertTypes& types, std::uint32_t width, std::uint32_t ff) {
    const TensorType all[] = {types.gate, types.up, types.down};
    GpuKernels kernels = GpuKernels::Build(device(), all).value();
    Rng rng(TestSeed());
    constexpr std::uint32_t kRows = 11;
    GpuExpertMlp mlp =
        GpuExpertMlp::Create(kernels, {.width = width, .ff = ff, .rows = kRows}).value();
    std::vector<float> values(std::size_t{kRows} * width);
    for (float& value : values) value = static_cast<float>(rng.Normal());
    std::vector<std::byte> codes(width % 32 == 0 ? ActivationBytes(kRows, width) : 0);
    const Activations x = MakeActivations(values.data(), width, kRows, width, codes);
    for (std::size_t row = 0; row < kRows && !codes.empty(); ++row) {
      QuantizeActivationsReference(x, row);
    }
    const ExpertOnBoth first(device(), types, width, ff, rng),
        second(device(), types, width, ff, rng);

    // Handed in together, as a layer does: neither may disturb the other.
    const std::vector<std::vector<std::uint32_t>> rows = {
        {4}, {6, 0, 2}, {10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {9, 9}};
    std::vector<std::vector<float>> out;
    for (const auto& some : rows) out.emplace_back(some.size() * width);
    ASSERT_TRUE(mlp.SetRows(values).ok());
    GpuEventPtr last;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      last = mlp.Run((i % 2 == 0 ? first : second).mlp(), rows[i], out[i], {}).value();
    }
    ASSERT_TRUE(last->Wait().ok());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const ExpertOnBoth& expert = i % 2 == 0 ? first : second;
      for (std::size_t j = 0; j < rows[i].size(); ++j) {
        EXPECT_EQ(BitsOf(std::span(out[i]).subspan(j * width, width)),
                  BitsOf(expert.Reference(x, rows[i][j])))
            << Name(types.gate) << ", row " << j << " of " << rows[i].size();
      }
    }
  }
};

TEST_F(GpuExperts, HaveTheBitsOfTheReferenceForTheTypesOfUploads) {
  ExpectReference({TensorType::kQ8_0, TensorType::kQ8_0, TensorType::kQ8_0}, 96, 64);
  ExpectReference({TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0}, 64, 160);
  ExpectReference({TensorType::kQ4_K, TensorType::kQ4_K, TensorType::kQ6_K}, 256, 512);
}

TEST_F(GpuExperts, HaveTheBitsOfTheReferenceInMixedTypes) {
  ExpectReference({TensorType::kIQ4_XS, TensorType::kQ5_K, TensorType::kF16}, 256, 80);
  ExpectReference({TensorType::kIQ2_XS, TensorType::kIQ3_XXS, TensorType::kIQ3_S}, 256, 256);
  ExpectReference({TensorType::kF32, TensorType::kBF16, TensorType::kQ5_1}, 40, 96);
}

TEST_F(GpuExperts, HaveTheBitsOfTheReferenceWhereNothingHasAnEightBitForm) {
  ExpectReference({TensorType::kF32, TensorType::kF16, TensorType::kBF16}, 37, 23);
}

TEST_F(GpuExperts, HaveTheBitsOfTheReferenceWithBiasesAndOtherForms) {
  ExpectReference(
      {TensorType::kMXFP4, TensorType::kMXFP4, TensorType::kMXFP4, GateForm::kClamped, true}, 96,
      64);
  ExpectReference({TensorType::kNVFP4, TensorType::kNVFP4, TensorType::kNVFP4}, 128, 64);
  ExpectReference({TensorType::kQ8_0, TensorType::kQ8_0, TensorType::kQ4_1, GateForm::kGelu, true},
                  64, 64);
  for (const GateForm form : {GateForm::kRelu, GateForm::kSquaredRelu}) {
    ExpectReference({TensorType::kQ8_0, TensorType::kQ8_0, TensorType::kQ5_0, form}, 96, 64);
  }
}

}  // namespace
}  // namespace troupe
