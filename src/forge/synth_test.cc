#include "forge/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gguf/reader.h"
#include "model/config.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

ModelShape Shape(std::string_view name) {
  const ModelShape* shape = FindShape(name);
  EXPECT_NE(shape, nullptr) << name;
  return *shape;
}

SynthOptions In(TensorType type) { return {.layout = {.mix = {.type = type}}}; }

std::vector<std::string> NamesStartingWith(std::string_view prefix) {
  std::vector<std::string> names;
  for (const std::string_view name : ShapeNames()) {
    if (name.starts_with(prefix)) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> AllNames() { return NamesStartingWith(""); }

Bytes SizeOf(const std::vector<SynthTensor>& tensors) {
  Bytes bytes;
  for (const SynthTensor& tensor : tensors) bytes += SizeOfTensor(tensor.spec).value();
  return bytes;
}

class EveryShape : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryShape, HasMetadataThatReadsBackAsItself) {
  const ModelShape shape = Shape(GetParam());
  Metadata metadata = MetadataOf(shape, {});
  const Result<ModelConfig> config = ReadModelConfig(metadata);
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->architecture, shape.architecture);
  EXPECT_EQ(config->FileBlocks(), shape.layers);
  EXPECT_EQ(config->width, shape.width);
  EXPECT_EQ(config->vocabulary, shape.vocabulary);
  EXPECT_EQ(config->attention.heads, shape.heads);
  EXPECT_EQ(config->attention.mla.has_value(), shape.mla.has_value());
  if (!shape.mla) {
    EXPECT_EQ(config->attention.kv_heads, shape.kv_heads);
    EXPECT_EQ(config->attention.key_dim, shape.head_dim);
  }
  ASSERT_EQ(config->moe.routing.experts > 0, shape.experts.has_value());
  if (!shape.experts) return;
  EXPECT_EQ(config->moe.routing.experts, shape.experts->count);
  EXPECT_EQ(config->moe.routing.top_k, shape.experts->top_k);
  EXPECT_EQ(config->moe.routing.normalise, shape.experts->normalise);
  EXPECT_EQ(config->moe.routing.groups_used, shape.experts->groups_used);
  EXPECT_EQ(config->moe.expert_ff, shape.experts->ff);
  // A dense part beside the experts is as wide as dense layers.
  EXPECT_EQ(config->moe.shared_ff,
            config->moe.beside_dense ? shape.dense_ff : shape.experts->shared_ff);
  EXPECT_EQ(config->moe.leading_dense, shape.experts->leading_dense);
}

TEST_P(EveryShape, HasTensorsWithDistinctNamesThatFitTheirTypes) {
  const ModelShape shape = Shape(GetParam());
  for (const TensorTypeInfo& type : AllTensorTypes()) {
    std::set<std::string> names;
    for (const SynthTensor& tensor : TensorsOf(shape, {.mix = {.type = type.type}})) {
      EXPECT_TRUE(names.insert(tensor.spec.name).second) << tensor.spec.name;
      EXPECT_TRUE(SizeOfTensor(tensor.spec).ok()) << tensor.spec.name << " in " << type.name;
      EXPECT_GT(tensor.deviation, 0) << tensor.spec.name;
    }
  }
}

std::string WithoutPunctuation(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryShape, ::testing::ValuesIn(AllNames()), WithoutPunctuation);

// What the publishers say, in billions of weights.
TEST(PublishedShapes, HaveAsManyWeightsAsPublished) {
  const std::pair<const char*, double> kPublished[] = {{"olmoe-1b-7b", 6.92},
                                                       {"qwen1.5-moe-a2.7b", 14.32},
                                                       {"qwen2-57b-a14b", 57.41},
                                                       {"qwen3-30b-a3b", 30.5},
                                                       {"mixtral-8x7b", 46.7},
                                                       {"deepseek-moe-16b", 16.38},
                                                       {"deepseek-v2-lite", 15.71},
                                                       {"glm-4.7-flash", 29.94},
                                                       {"gpt-oss-20b", 20.91},
                                                       {"gpt-oss-120b", 116.83},
                                                       {"minimax-m2", 228.69},
                                                       {"lfm2-8b-a1b", 8.34},
                                                       {"granite-3.1-3b-a800m", 3.30},
                                                       {"gemma-4-26b-a4b", 25.23},
                                                       {"granite-4.0-h-tiny", 6.94},
                                                       {"granite-4.0-h-small", 32.21},
                                                       {"nemotron-3-nano-30b-a3b", 31.58}};
  for (const auto& [name, billions] : kPublished) {
    std::uint64_t weights = 0;
    for (const SynthTensor& tensor : TensorsOf(Shape(name), {})) {
      weights += tensor.spec.ElementCount();
    }
    EXPECT_NEAR(static_cast<double>(weights) * 1e-9, billions, 0.05) << name;
  }
}

TEST(PublishedShapes, AreModelsWithFewerLayersToo) {
  for (const char* name : {"lfm2-8b-a1b", "gemma-4-26b-a4b", "qwen3.6-35b-a3b", "gpt-oss-20b"}) {
    ModelShape shape = Shape(name);
    shape.layers = 6;
    const Result<ModelConfig> config = ReadModelConfig(MetadataOf(shape, {}));
    ASSERT_TRUE(config.ok()) << config.status().ToString();
    EXPECT_EQ(config->layers, 6u);
    EXPECT_GT(config->AttentionLayers(), 0u) << name;
  }
}

TEST(TinyShapes, UseEveryTypeAsItIs) {
  for (const std::string& name : NamesStartingWith("tiny-")) {
    for (const TensorTypeInfo& type : AllTensorTypes()) {
      for (const SynthTensor& tensor : TensorsOf(Shape(name), {.mix = {.type = type.type}})) {
        const TensorType expected = IsQuantizable(tensor.spec) ? type.type : TensorType::kF32;
        EXPECT_EQ(tensor.spec.type, expected) << name << " " << tensor.spec.name;
      }
    }
  }
}

TEST(SmallShape, IsOfTheSizeThatSpeedIsMeasuredAt) {
  const Bytes bytes = SizeOf(TensorsOf(Shape("small"), {.mix = {.type = TensorType::kQ4_0}}));
  EXPECT_NEAR(static_cast<double>(bytes.count()) * 1e-6, 978.3, 0.1);
}

TEST(Synthesize, WritesAFileThatHoldsWhatTheLayoutSays) {
  const TempFolder folder;
  const std::string path = folder.PathOf("m.gguf");
  const ModelShape shape = Shape("tiny-deepseek2");
  const SynthOptions options = In(TensorType::kQ4_K);
  const Result<SynthReport> report = Synthesize(shape, options, path);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->files, std::vector<std::string>{path});
  const Result<GgufModel> model = GgufModel::Open(path);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->file_bytes(), report->bytes);
  const std::vector<SynthTensor> expected = TensorsOf(shape, options.layout);
  ASSERT_EQ(model->tensors().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(static_cast<const TensorSpec&>(model->tensors()[i]), expected[i].spec);
  }
}

TEST(Synthesize, GivesTheSameBytesForOneSeedAndAnyThreads) {
  const TempFolder folder;
  const auto bytes_of = [&](std::uint64_t seed, std::size_t threads) {
    SynthOptions options = In(TensorType::kQ5_1);
    options.seed = seed;
    options.threads = threads;
    EXPECT_TRUE(Synthesize(Shape("tiny-olmoe"), options, folder.PathOf("m.gguf")).ok());
    return folder.Read("m.gguf");
  };
  const std::string once = bytes_of(1, 1);
  EXPECT_TRUE(once == bytes_of(1, 3));
  EXPECT_FALSE(once == bytes_of(2, 1));
}

TEST(Synthesize, WritesPartsThatOpenAsOneModel) {
  const TempFolder folder;
  SynthOptions options = In(TensorType::kQ4_0);
  ASSERT_TRUE(Synthesize(Shape("tiny-llama"), options, folder.PathOf("whole.gguf")).ok());
  options.split_bytes = 200_KiB;
  const Result<SynthReport> report =
      Synthesize(Shape("tiny-llama"), options, folder.PathOf("parts.gguf"));
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_GT(report->files.size(), 2u);
  EXPECT_THAT(report->files.front(), HasSubstr("parts-00001-of-0000"));
  const GgufModel whole = GgufModel::Open(folder.PathOf("whole.gguf")).value();
  const Result<GgufModel> parts = GgufModel::Open(report->files.back());
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  ASSERT_EQ(parts->tensors().size(), whole.tensors().size());
  for (const TensorInfo& tensor : whole.tensors()) {
    const TensorInfo* other = parts->Find(tensor.name);
    ASSERT_NE(other, nullptr);
    std::vector<std::byte> a(tensor.bytes.count()), b(other->bytes.count());
    ASSERT_TRUE(whole.ReadTensor(tensor, a).ok());
    ASSERT_TRUE(parts->ReadTensor(*other, b).ok());
    EXPECT_EQ(a, b) << tensor.name;
  }
}

TEST(Synthesize, UsesABorrowedTokenizer) {
  const TempFolder folder;
  SynthOptions options = In(TensorType::kQ4_0);
  options.tokenizer.emplace("lender.gguf");
  options.tokenizer->Set("tokenizer.ggml.model", "gpt2");
  options.tokenizer->Set("tokenizer.ggml.tokens", Array{StringArray{"a", "b"}});
  ASSERT_TRUE(Synthesize(Shape("tiny-llama"), options, folder.PathOf("m.gguf")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("m.gguf")).value();
  EXPECT_EQ(*model.metadata().GetString("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ((*model.metadata().GetStrings("tokenizer.ggml.tokens"))->size(), 512u);
}

TEST(Synthesize, RefusesShapesThatNoModelHasAndLeavesNoFile) {
  const TempFolder folder;
  const auto error_of = [&](auto change) {
    ModelShape shape = Shape("tiny-qwen2moe");
    change(shape);
    const Result<SynthReport> report =
        Synthesize(shape, In(TensorType::kQ4_0), folder.PathOf("m.gguf"));
    EXPECT_FALSE(report.ok());
    return report.ok() ? "" : report.status().message();
  };
  EXPECT_EQ(error_of([](ModelShape& s) { s.blocks = "M"; }),
            "tiny-qwen2moe: the number of layers is 2, at most 1 expected");
  EXPECT_EQ(error_of([](ModelShape& s) { s.layers = 0; }),
            "tiny-qwen2moe: the number of layers is 0, at least 1 expected");
  EXPECT_THAT(error_of([](ModelShape& s) { s.kv_heads = 3; }), HasSubstr("head_count_kv is 3"));
  EXPECT_THAT(error_of([](ModelShape& s) { s.experts->top_k = 9; }),
              HasSubstr("expert_used_count is 9"));
  EXPECT_THAT(error_of([](ModelShape& s) { s.vocabulary = 100; }),
              HasSubstr("a vocabulary of 100"));
  EXPECT_THAT(error_of([](ModelShape& s) { s.experts.reset(), s.dense_ff = 0; }),
              HasSubstr("the width of a dense feed-forward is 0"));
  EXPECT_EQ(
      error_of([](ModelShape& s) { s.next_token_layers = 1, s.small_head.tokens = 513; }),
      "tiny-qwen2moe: the head's output is of 513 tokens, at most the 512 there are expected");
  EXPECT_EQ(folder.Count(), 0u);
}

}  // namespace
}  // namespace troupe
