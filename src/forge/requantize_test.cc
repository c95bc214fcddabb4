#include "forge/requantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "forge/synth.h"
#include "gguf/writer.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string SynthToRequantize(const TempFolder& folder, std::string_view shape, TensorType type,
                              Bytes split = {}) {
  ModelShape one_layer = *FindShape(shape);
  one_layer.layers = 1;
  const Result<SynthReport> report =
      Synthesize(one_layer, {.layout = {.mix = {.type = type}}, .split_bytes = split},
                 folder.PathOf(fmt::format("{}.gguf", Name(type))));
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report->files.front();
}

Result<RequantizeReport> Convert(const std::string& in, TensorMix mix, const std::string& out,
                                 std::size_t threads = 1) {
  const Result<GgufModel> model = GgufModel::Open(in);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return Requantize(*model, {.mix = mix, .threads = threads}, out);
}

std::vector<std::byte> BytesOfTensor(const GgufModel& model, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes.count());
  EXPECT_TRUE(model.ReadTensor(tensor, bytes).ok());
  return bytes;
}

class EveryTarget : public ::testing::TestWithParam<TensorType> {};

// The definition, row by row, without threads or chunks.
TEST_P(EveryTarget, IsQuantizedFromTheFloatsOfTheSource) {
  const TempFolder folder;
  const std::string in = SynthToRequantize(folder, "tiny-olmoe", TensorType::kF32);
  const Result<RequantizeReport> report = Convert(in, {.type = GetParam()}, folder.PathOf("o"), 2);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  const GgufModel source = GgufModel::Open(in).value();
  const GgufModel target = GgufModel::Open(folder.PathOf("o")).value();
  EXPECT_EQ(report->bytes, target.file_bytes());
  EXPECT_EQ(*target.metadata().GetUint("general.file_type"), FileTypeNumber(GetParam()));
  ASSERT_EQ(target.tensors().size(), source.tensors().size());
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const TensorInfo& from = source.tensors()[i];
    const TensorInfo& to = target.tensors()[i];
    EXPECT_EQ(to.name, from.name);
    ASSERT_EQ(to.type, IsQuantizable(from) ? GetParam() : TensorType::kF32) << from.name;
    std::vector<float> floats(from.ElementCount());
    DequantizeRow(from.type, BytesOfTensor(source, from), floats);
    std::vector<std::byte> expected(to.bytes.count());
    QuantizeRow(to.type, floats, expected, {}, Rounding::kBest);
    ASSERT_TRUE(BytesOfTensor(target, to) == expected) << from.name;
  }
}

TEST_P(EveryTarget, IsTheSameForAnyNumberOfThreads) {
  const TempFolder folder;
  const std::string in = SynthToRequantize(folder, "tiny-llama", TensorType::kQ8_0);
  ASSERT_TRUE(Convert(in, {.type = GetParam()}, folder.PathOf("one"), 1).ok());
  ASSERT_TRUE(Convert(in, {.type = GetParam()}, folder.PathOf("three"), 3).ok());
  EXPECT_TRUE(folder.Read("one") == folder.Read("three"));
}

std::vector<TensorType> TypesToRequantize() {
  std::vector<TensorType> types;
  for (const TensorTypeInfo& type : AllTensorTypes()) types.push_back(type.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, EveryTarget, ::testing::ValuesIn(TypesToRequantize()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(Requantize, CopiesWhatHasTheTypeAlready) {
  const TempFolder folder;
  const std::string in = SynthToRequantize(folder, "tiny-qwen2moe", TensorType::kQ4_K);
  const Result<RequantizeReport> report =
      Convert(in, {.type = TensorType::kQ4_K}, folder.PathOf("copy"));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->converted, 0u);
  EXPECT_TRUE(folder.Read("copy") == folder.Read("Q4_K.gguf"));
}

TEST(Requantize, GivesOutputAndEmbeddingTheirOwnTypes) {
  const TempFolder folder;
  const std::string in = SynthToRequantize(folder, "tiny-llama", TensorType::kF16);
  const TensorMix mix{
      .type = TensorType::kQ4_0, .embedding = TensorType::kQ8_0, .output = TensorType::kQ6_K};
  ASSERT_TRUE(Convert(in, mix, folder.PathOf("o")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("o")).value();
  EXPECT_EQ(model.Find("token_embd.weight")->type, TensorType::kQ8_0);
  EXPECT_EQ(model.Find("output.weight")->type, TensorType::kQ6_K);
  EXPECT_EQ(model.Find("blk.0.attn_q.weight")->type, TensorType::kQ4_0);
}

TEST(Requantize, MakesOneFileOfSeveral) {
  const TempFolder folder;
  const std::string part = SynthToRequantize(folder, "tiny-llama", TensorType::kF16, 500_KiB);
  ASSERT_THAT(part, HasSubstr("-00001-of-"));
  ASSERT_TRUE(Convert(part, {.type = TensorType::kQ8_0}, folder.PathOf("o.gguf")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("o.gguf")).value();
  EXPECT_EQ(model.files().size(), 1u);
  EXPECT_EQ(model.metadata().Find("split.count"), nullptr);
}

// Rows of 96 fit no block of 256; rows of 40 fit not even one of 32.
TEST(Requantize, FallsBackWhereRowsDoNotFitAndCountsIt) {
  const TempFolder folder;
  const TensorSpec specs[] = {{"a.weight", TensorType::kF32, {96, 2}},
                              {"b.weight", TensorType::kF32, {40, 2}},
                              {"c.weight", TensorType::kF32, {256, 2}}};
  GgufWriter writer = GgufWriter::Create(folder.PathOf("m"), Metadata(), specs).value();
  for (const TensorSpec& spec : specs) {
    ASSERT_TRUE(writer.Append(spec.name, std::vector<std::byte>(spec.ElementCount() * 4)).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
  const Result<RequantizeReport> report =
      Convert(folder.PathOf("m"), {.type = TensorType::kQ6_K}, folder.PathOf("o"));
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->fallbacks, 2u);
  const GgufModel model = GgufModel::Open(folder.PathOf("o")).value();
  EXPECT_EQ(model.Find("a.weight")->type, TensorType::kQ8_0);
  EXPECT_EQ(model.Find("b.weight")->type, TensorType::kF16);
  EXPECT_EQ(model.Find("c.weight")->type, TensorType::kQ6_K);
}

TEST(Requantize, NamesTensorRowAndElementOfAValueThatIsNoNumber) {
  const TempFolder folder;
  constexpr std::uint64_t kRows = 5000;  // several tasks
  const TensorSpec spec("a.weight", TensorType::kF32, {32, kRows});
  std::vector<float> values(spec.ElementCount());
  values[4000 * 32 + 7] = std::numeric_limits<float>::quiet_NaN();
  values[900 * 32 + 3] = std::numeric_limits<float>::infinity();
  GgufWriter writer = GgufWriter::Create(folder.PathOf("m"), Metadata(), {&spec, 1}).value();
  ASSERT_TRUE(writer.Append(spec.name, std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE(writer.Finish().ok());
  for (const std::size_t threads : {1, 3}) {
    const Result<RequantizeReport> report =
        Convert(folder.PathOf("m"), {.type = TensorType::kQ4_0}, folder.PathOf("o"), threads);
    EXPECT_EQ(report.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(report.status().message(), HasSubstr("tensor 'a.weight', row 900: element 3 is"));
  }
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(Requantize, RefusesToWriteOverItsInputUnderAnyName) {
  const TempFolder folder;
  const std::string in = SynthToRequantize(folder, "tiny-llama", TensorType::kQ8_0);
  const std::string before = folder.Read("Q8_0.gguf");
  std::filesystem::create_symlink(in, folder.PathOf("link.gguf"));
  for (const std::string& out : {in, folder.PathOf("link.gguf"), folder.PathOf("./Q8_0.gguf")}) {
    const Result<RequantizeReport> report = Convert(in, {.type = TensorType::kQ4_0}, out);
    EXPECT_EQ(report.status().code(), Code::kInvalidArgument) << out;
  }
  EXPECT_TRUE(folder.Read("Q8_0.gguf") == before);
}

TEST(Requantize, StoppedByItsCallerItLeavesNoFile) {
  const TempFolder folder;
  const GgufModel model =
      GgufModel::Open(SynthToRequantize(folder, "tiny-llama", TensorType::kQ8_0)).value();
  RequantizeOptions options{.mix = {.type = TensorType::kQ4_0}};
  options.progress = [](Bytes done, Bytes all) { return done < Bytes(all.count() / 2); };
  EXPECT_EQ(Requantize(model, options, folder.PathOf("o")).status().code(), Code::kCancelled);
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(Requantize, ReportsProgressUpToTheEnd) {
  const TempFolder folder;
  const GgufModel model =
      GgufModel::Open(SynthToRequantize(folder, "tiny-llama", TensorType::kQ8_0)).value();
  Bytes last, total;
  RequantizeOptions options{.mix = {.type = TensorType::kQ4_0}};
  options.progress = [&](Bytes done, Bytes all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  };
  ASSERT_TRUE(Requantize(model, options, folder.PathOf("o")).ok());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, model.tensor_bytes());
}

}  // namespace
}  // namespace troupe
