#include "model/weight_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "gguf/writer.h"
#include "model/tiny_model_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

bool SameBytes(const PanelMatrix& a, const PanelMatrix& b) {
  return a.type == b.type && a.rows == b.rows && a.cols == b.cols &&
         std::memcmp(a.data, b.data, PanelBytes(a.type, a.rows, a.cols)) == 0;
}

WeightStore Load(const TinyModel& model, LayerRange layers, ThreadPool& threads) {
  return LoadWeights(model.file(), model.config(), layers, RoutedExperts::kResident, threads)
      .value();
}

TEST(WeightLoader, PartsOfAModelTakeTogetherWhatTheWholeTakes) {
  const TinyModel model("tiny-deepseek2");
  const auto measure = [&](LayerRange layers) {
    return MeasureWeights(model.file(), model.config(), layers).value().bytes;
  };
  const WeightBytes whole = MeasureWeights(model.file(), model.config())->bytes;
  for (std::uint32_t cut = 1; cut < model.config().layers; ++cut) {
    const WeightBytes lower = measure({0, cut}), upper = measure({cut, model.config().layers});
    EXPECT_EQ(lower.experts + upper.experts, whole.experts);
    EXPECT_EQ(lower.dense + upper.dense, whole.dense);
    EXPECT_GT(lower.dense, Bytes());
  }
}

TEST(WeightLoader, APartHasItsLayersAndTheEndsThatItNeeds) {
  const TinyModel model("tiny-qwen3moe");
  ThreadPool threads(2);
  const WeightStore whole = Load(model, model.AllLayers(), threads);
  const WeightStore lower = Load(model, {0, 1}, threads), upper = Load(model, {1, 2}, threads);
  const ModelWeights &all = whole.weights(), &low = lower.weights(), &up = upper.weights();
  ASSERT_EQ(low.layers.size(), 2u);
  EXPECT_TRUE(SameBytes(low.embedding, all.embedding));
  EXPECT_TRUE(SameBytes(up.output, all.output));
  EXPECT_EQ(up.embedding.data, nullptr);
  EXPECT_EQ(low.output.data, nullptr);
  EXPECT_TRUE(SameBytes(low.layers[0].attention.q.weight, all.layers[0].attention.q.weight));
  EXPECT_TRUE(SameBytes(up.layers[1].moe.experts[3].down, all.layers[1].moe.experts[3].down));
  EXPECT_TRUE(up.layers[0].moe.experts.empty());
  EXPECT_EQ(low.layers[1].ffn_norm, nullptr);
}

// The same file with one more tensor.
std::string WithTensor(const TinyModel& model, const std::string& name, const TempFolder& folder,
                       std::uint64_t length = 32) {
  std::vector<TensorSpec> specs(model.file().tensors().begin(), model.file().tensors().end());
  specs.emplace_back(name, TensorType::kF32, std::initializer_list<std::uint64_t>{length});
  GgufWriter writer =
      GgufWriter::Create(folder.PathOf("more.gguf"), model.file().metadata(), specs).value();
  for (const TensorSpec& spec : specs) {
    std::vector<std::byte> bytes(length * sizeof(float));
    if (const TensorInfo* tensor = model.file().Find(spec.name)) {
      bytes.resize(tensor->bytes.count());
      EXPECT_TRUE(model.file().ReadTensor(*tensor, bytes).ok());
    }
    EXPECT_TRUE(writer.Append(spec.name, bytes).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return folder.PathOf("more.gguf");
}

TEST(WeightLoader, ATensorThatNobodyKnowsIsRefusedInWhicheverPartItLies) {
  const TinyModel model("tiny-olmoe");
  const TempFolder folder;
  const GgufModel more = GgufModel::Open(WithTensor(model, "blk.1.strange.weight", folder)).value();
  for (const LayerRange layers : {LayerRange{0, 2}, LayerRange{0, 1}, LayerRange{1, 2}}) {
    EXPECT_TRUE(MeasureWeights(model.file(), model.config(), layers).ok());
    EXPECT_THAT(MeasureWeights(more, model.config(), layers).status().message(),
                HasSubstr("blk.1.strange.weight"));
  }
}

TEST(WeightLoader, FactorsOfMatricesAreReadAndThoseOfInputsLeftOut) {
  const TinyModel model("tiny-olmoe");
  const TempFolder folder;
  const auto measured = [&](const std::string& name, std::uint64_t length) {
    const GgufModel file = GgufModel::Open(WithTensor(model, name, folder, length)).value();
    return MeasureWeights(file, model.config());
  };
  const WeightBytes plain = MeasureWeights(model.file(), model.config())->bytes;
  EXPECT_EQ(measured("blk.1.ffn_up_exps.input_scale", 8)->bytes.total(), plain.total());
  EXPECT_GT(measured("blk.1.ffn_up_exps.scale", 8)->bytes.dense, plain.dense);
  EXPECT_GT(measured("blk.1.attn_q.scale", 1)->bytes.dense, plain.dense);
  EXPECT_THAT(measured("blk.1.ffn_up_exps.scale", 7).status().message(),
              HasSubstr("'blk.1.ffn_up_exps.scale' has shape [7], and 'blk.1.ffn_up_exps.weight'"));
  EXPECT_THAT(measured("token_embd.scale", 1).status().message(),
              HasSubstr("'token_embd.weight' can have no such factor"));
  EXPECT_THAT(measured("blk.1.strange.input_scale", 1).status().message(),
              HasSubstr("'blk.1.strange.input_scale' is none"));
}

// A layer that guesses a further token may lie behind the last one; not everything may.
TEST(WeightLoader, OfALayerThatGuessesAFurtherTokenOnlyWhatIsKnownIsLeftOut) {
  const TinyModel model("tiny-qwen35moe");
  const TempFolder folder;
  ASSERT_EQ(model.config().layers, 4u);
  ASSERT_NE(model.file().Find("blk.4.nextn.eh_proj.weight"), nullptr);
  EXPECT_TRUE(MeasureWeights(model.file(), model.config()).ok());
  const GgufModel more = GgufModel::Open(WithTensor(model, "blk.4.strange.weight", folder)).value();
  EXPECT_THAT(MeasureWeights(more, model.config()).status().message(),
              HasSubstr("blk.4.strange.weight"));
}

// As files were before the projections were told apart: key head by key head its query, its key,
// its values and their gates.
std::vector<std::byte> InOneMatrix(const GgufModel& file, const std::string& prefix,
                                   const DeltaNetConfig& delta) {
  const auto read = [&](const char* name) {
    const TensorInfo& tensor = *file.Require(prefix + name).value();
    std::vector<std::byte> bytes(tensor.bytes.count());
    EXPECT_TRUE(file.ReadTensor(tensor, bytes).ok());
    return bytes;
  };
  const std::vector<std::byte> qkv = read("attn_qkv.weight"), z = read("attn_gate.weight");
  const std::size_t row = qkv.size() / delta.Channels();
  const std::size_t values = delta.head_dim * delta.value_heads / delta.key_heads;
  std::vector<std::byte> all;
  const auto append = [&](const std::vector<std::byte>& from, std::size_t first, std::size_t rows) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first * row);
    all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(rows * row));
  };
  for (std::size_t head = 0; head < delta.key_heads; ++head) {
    append(qkv, head * delta.head_dim, delta.head_dim);
    append(qkv, delta.KeyRow() + head * delta.head_dim, delta.head_dim);
    append(qkv, 2 * delta.KeyRow() + head * values, values);
    append(z, head * values, values);
  }
  return all;
}

TEST(WeightLoader, OldFilesOfDeltaNetsComeToTheSameWeightsAsNewOnes) {
  const TinyModel model("tiny-qwen3next");
  const TempFolder folder;
  const DeltaNetConfig& delta = *model.config().delta;
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : model.file().tensors()) {
    if (tensor.name.ends_with("attn_gate.weight")) continue;
    specs.push_back(tensor);
    if (!tensor.name.ends_with("attn_qkv.weight")) continue;
    specs.back().name.replace(tensor.name.find("attn_qkv"), 8, "ssm_in");
    specs.back().dims[1] = delta.Channels() + delta.ValueRow();
  }
  GgufWriter writer =
      GgufWriter::Create(folder.PathOf("old.gguf"), model.file().metadata(), specs).value();
  for (const TensorSpec& spec : specs) {
    std::vector<std::byte> bytes;
    if (const TensorInfo* tensor = model.file().Find(spec.name)) {
      bytes.resize(tensor->bytes.count());
      ASSERT_TRUE(model.file().ReadTensor(*tensor, bytes).ok());
    } else {
      bytes = InOneMatrix(model.file(), spec.name.substr(0, spec.name.find("ssm_in")), delta);
    }
    ASSERT_TRUE(writer.Append(spec.name, bytes).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
  const GgufModel old = GgufModel::Open(folder.PathOf("old.gguf")).value();
  ThreadPool threads(2);
  const WeightStore then =
      LoadWeights(old, model.config(), model.AllLayers(), RoutedExperts::kResident, threads)
          .value();
  const WeightStore now = Load(model, model.AllLayers(), threads);
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    EXPECT_TRUE(
        SameBytes(then.weights().layers[layer].delta.qkv, now.weights().layers[layer].delta.qkv));
    EXPECT_TRUE(
        SameBytes(then.weights().layers[layer].delta.z, now.weights().layers[layer].delta.z));
  }
}

// The model's file without one of its tensors, or with one of another shape.
std::string Spoilt(const TinyModel& model, std::string_view name, bool keep,
                   const TempFolder& folder) {
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : model.file().tensors()) {
    if (tensor.name != name) specs.push_back(tensor);
    if (tensor.name != name || !keep) continue;
    TensorSpec longer = tensor;
    longer.dims[0] *= 2;
    specs.push_back(longer);
  }
  GgufWriter writer =
      GgufWriter::Create(folder.PathOf("spoilt.gguf"), model.file().metadata(), specs).value();
  for (const TensorSpec& spec : specs) {
    const std::vector<std::byte> zeros(SizeOfTensor(spec).value().count());
    EXPECT_TRUE(writer.Append(spec.name, zeros).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return folder.PathOf("spoilt.gguf");
}

TEST(WeightLoader, EveryBiasAndSinkOfGptOssIsMissedAndMeasured) {
  const TinyModel model("tiny-gpt-oss");
  for (const char* name :
       {"blk.0.attn_q.bias", "blk.1.attn_output.bias", "blk.0.attn_sinks.weight",
        "blk.3.ffn_gate_inp.bias", "blk.2.ffn_gate_exps.bias", "blk.2.ffn_up_exps.bias",
        "blk.3.ffn_down_exps.bias", "blk.1.post_attention_norm.weight"}) {
    for (const bool keep : {false, true}) {
      const TempFolder folder;
      const GgufModel spoilt = GgufModel::Open(Spoilt(model, name, keep, folder)).value();
      const Status status = MeasureWeights(spoilt, model.config()).status();
      EXPECT_THAT(status.message(), HasSubstr(std::string("'") + name + "'"));
      EXPECT_THAT(status.message(), HasSubstr(keep ? "has shape" : "is missing"));
    }
  }
}

TEST(WeightLoader, EveryNormAndScaleOfGemma4IsMissedAndMeasured) {
  const TinyModel model("tiny-gemma4");
  for (const char* name :
       {"blk.0.attn_v.weight", "blk.1.attn_k_norm.weight", "blk.0.post_attention_norm.weight",
        "blk.3.post_ffw_norm.weight", "blk.2.ffn_gate_inp.scale", "blk.2.pre_ffw_norm_2.weight",
        "blk.1.post_ffw_norm_1.weight", "blk.1.post_ffw_norm_2.weight", "blk.2.ffn_up.weight",
        "blk.3.ffn_gate_up_exps.weight"}) {
    for (const bool keep : {false, true}) {
      const TempFolder folder;
      const GgufModel spoilt = GgufModel::Open(Spoilt(model, name, keep, folder)).value();
      const Status status = MeasureWeights(spoilt, model.config()).status();
      // Without the fused matrices two others are missed.
      if (!keep && std::string_view(name).find("gate_up") != std::string_view::npos) {
        EXPECT_THAT(status.message(), HasSubstr("'blk.3.ffn_gate_exps.weight' is missing"));
        continue;
      }
      EXPECT_THAT(status.message(), HasSubstr(std::string("'") + name + "'"));
      EXPECT_THAT(status.message(), HasSubstr(keep ? "has shape" : "is missing"));
    }
  }
}

// Finds every matrix right but those of tensors of that name, of which nothing is recorded.
class AllRightBut final : public WeightChecks {
 public:
  explicit AllRightBut(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<MatrixCheck> Begin(const TensorInfo& tensor, std::uint64_t) const override {
    if (tensor.name == name_) return nullptr;
    return std::make_unique<Right>();
  }

 private:
  struct Right final : MatrixCheck {
    void Add(std::span<const std::byte>) override {}
    Status Finish() override { return OkStatus(); }
  };
  std::string name_;
};

std::uint64_t VerifiedExperts(const TinyModel& model, RoutedExperts experts,
                              const WeightChecks* checks) {
  ThreadPool threads(2);
  return LoadWeights(model.file(), model.config(), model.AllLayers(), experts, threads, {}, checks)
      ->verified_experts();
}

TEST(WeightLoader, AnExpertIsVerifiedOnceAllItsMatricesWereCompared) {
  // gpt-oss has three tensors of experts in each layer, gemma4 two: gate and up matrices are one.
  for (const auto& [shape, tensor] : {std::pair("tiny-gpt-oss", "blk.1.ffn_up_exps.weight"),
                                      {"tiny-gemma4", "blk.1.ffn_gate_up_exps.weight"}}) {
    const TinyModel model(shape);
    const std::uint64_t a_layer = model.config().moe.routing.experts,
                        all = model.config().layers * a_layer;
    const AllRightBut none(""), one(tensor);
    EXPECT_EQ(VerifiedExperts(model, RoutedExperts::kResident, &none), all) << shape;
    EXPECT_EQ(VerifiedExperts(model, RoutedExperts::kResident, &one), all - a_layer) << shape;
    EXPECT_EQ(VerifiedExperts(model, RoutedExperts::kResident, nullptr), 0u) << shape;
    EXPECT_EQ(VerifiedExperts(model, RoutedExperts::kElsewhere, &none), 0u) << shape;
  }
}

}  // namespace
}  // namespace troupe
