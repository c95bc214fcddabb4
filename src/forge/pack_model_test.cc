#include "forge/pack_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "forge/synth.h"
#include "forge/tensor_mix.h"
#include "gguf/writer.h"
#include "io/file.h"
#include "model/weight_loader.h"
#include "quant/dequantize.h"
#include "quant/panel.h"
#include "quant/quantize.h"
#include "runtime/container_layouts.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Synth(const TempFolder& folder, std::string_view shape, TensorType type,
                  Bytes split = {}) {
  ModelShape few_layers = *FindShape(shape);
  few_layers.layers = 3;
  const Result<SynthReport> report =
      Synthesize(few_layers, {.layout = {.mix = {.type = type}}, .split_bytes = split},
                 folder.PathOf("m.gguf"));
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report->files.front();
}

Result<PackReport> Pack(const std::string& model, const std::string& path,
                        const PackOptions& options = {}) {
  return PackModel(GgufModel::Open(model).value(), options, path);
}

// One expert's rows of one matrix, as the file has them, in another type: the definition, without
// threads or pieces.
std::vector<std::byte> RowsOf(const GgufModel& model, const ExpertMatrix& matrix,
                              std::uint32_t expert, TensorType type) {
  std::vector<std::byte> bytes(matrix.SourceBytes());
  EXPECT_TRUE(model.ReadRange(*matrix.tensor, expert * bytes.size(), bytes).ok());
  if (type == matrix.type) return bytes;
  std::vector<float> floats(matrix.rows * matrix.cols);
  DequantizeRow(matrix.type, bytes, floats);
  std::vector<std::byte> converted(matrix.rows * RowBytes(type, matrix.cols).count());
  QuantizeRow(type, floats, converted, {}, Rounding::kBest);
  return converted;
}

class Container {
 public:
  Container(const std::string& model, const std::string& path)
      : model_(GgufModel::Open(model).value()),
        file_(ReadFile::Open(path).value()),
        index_(ReadContainerIndex(file_).value()),
        layouts_(
            MeasureWeights(model_, ReadModelConfig(model_.metadata()).value()).value().experts) {}

  const ContainerIndex& index() const { return index_; }

  // Every expert's bytes against the model's.
  void ExpectExperts(std::size_t precision) const {
    const ExpertLayouts layouts = LayoutsIn(index_, precision, layouts_, file_.path()).value();
    for (const ContainerLayer& layer : index_.precisions[precision]) {
      for (std::uint32_t e = 0; e < index_.experts; ++e) {
        std::array<std::vector<std::byte>, 3> rows;
        std::array<std::span<const std::byte>, 3> views;
        for (std::size_t m = 0; m < 3; ++m) {
          rows[m] = RowsOf(model_, layouts_[layer.layer].matrices[m], e, layer.types[m]);
          views[m] = rows[m];
        }
        std::vector<std::byte> expected(layer.expert_bytes), found(layer.expert_bytes);
        layouts[layer.layer].Pack(views, expected);
        ASSERT_TRUE(file_.ReadAt(layer.OffsetOf(e), found).ok());
        ASSERT_TRUE(found == expected) << "layer " << layer.layer << ", expert " << e;
        ASSERT_EQ(layer.checksums[e], ContainerChecksum(expected));
      }
    }
  }

 private:
  GgufModel model_;
  ReadFile file_;
  ContainerIndex index_;
  ExpertLayouts layouts_;
};

class PackModelInEveryType : public ::testing::TestWithParam<TensorType> {};

TEST_P(PackModelInEveryType, EveryExpertIsPackedAsASlotHoldsIt) {
  const TempFolder folder;
  const std::string model = Synth(folder, "tiny-qwen2moe", GetParam());
  const Result<PackReport> report = Pack(model, folder.PathOf("m.experts"), {.threads = 2});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  const Container container(model, folder.PathOf("m.experts"));
  EXPECT_EQ(container.index().precisions.size(), 1u);
  EXPECT_EQ(container.index().panel_layout, kPanelLayoutVersion);
  EXPECT_TRUE(container.index().model == FingerprintModel(GgufModel::Open(model).value()).value());
  EXPECT_EQ(report->layers, 3u);
  EXPECT_EQ(report->experts, container.index().experts);
  EXPECT_EQ(report->bytes.count(), folder.Read("m.experts").size());
  EXPECT_EQ(report->low, Bytes());
  container.ExpectExperts(0);
}

std::vector<TensorType> AllTypes() {
  std::vector<TensorType> types;
  for (const TensorTypeInfo& type : AllTensorTypes()) types.push_back(type.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, PackModelInEveryType, ::testing::ValuesIn(AllTypes()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(PackModel, AddsEveryExpertAtLowerPrecision) {
  const TempFolder folder;
  const std::string model = Synth(folder, "tiny-olmoe", TensorType::kF16);
  for (const TensorType low : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ2_K}) {
    const Result<PackReport> report =
        Pack(model, folder.PathOf("m.experts"), {.threads = 2, .low = low});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_LT(report->low, report->full);
    const Container container(model, folder.PathOf("m.experts"));
    ASSERT_EQ(container.index().precisions.size(), 2u);
    container.ExpectExperts(0);
    container.ExpectExperts(1);
  }
}

TEST(PackModel, LeavesLayersWithoutExpertsOut) {
  const TempFolder folder;
  const std::string model = Synth(folder, "tiny-deepseek2", TensorType::kQ8_0);
  ASSERT_TRUE(Pack(model, folder.PathOf("m.experts")).ok());
  const Container container(model, folder.PathOf("m.experts"));
  EXPECT_EQ(container.index().precisions[0].front().layer, 1u);
  EXPECT_EQ(container.index().precisions[0].size(), 2u);
  container.ExpectExperts(0);
}

TEST(PackModel, GivesTheSameBytesForAnyNumberOfThreadsAndPartsOfTheModel) {
  const TempFolder whole, split;
  const std::string model = Synth(whole, "tiny-qwen3moe", TensorType::kQ8_0);
  const std::string part = Synth(split, "tiny-qwen3moe", TensorType::kQ8_0, 300_KiB);
  ASSERT_THAT(part, HasSubstr("-00001-of-"));
  const PackOptions low = {.threads = 1, .low = TensorType::kQ4_K};
  ASSERT_TRUE(Pack(model, whole.PathOf("1"), low).ok());
  ASSERT_TRUE(Pack(model, whole.PathOf("3"), {.threads = 3, .low = TensorType::kQ4_K}).ok());
  ASSERT_TRUE(Pack(part, split.PathOf("1"), low).ok());
  EXPECT_TRUE(whole.Read("1") == whole.Read("3"));
  EXPECT_TRUE(whole.Read("1") == split.Read("1"));
}

// Rows of 96 fit no block of 256; Q4_0, their next best, makes Q4_0 no smaller.
TEST(PackModel, FallsBackWhereRowsDoNotFitAndKeepsWhatWouldNotShrink) {
  const TempFolder folder;
  ModelShape shape = *FindShape("tiny-olmoe");
  shape.layers = 1;
  shape.width = 256;
  shape.experts->ff = 96;
  ASSERT_TRUE(
      Synthesize(shape, {.layout = {.mix = {.type = TensorType::kQ4_0}}}, folder.PathOf("m.gguf"))
          .ok());
  const Result<PackReport> report =
      Pack(folder.PathOf("m.gguf"), folder.PathOf("m.experts"), {.low = TensorType::kQ2_K});
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->fallbacks, 1u);
  const Container container(folder.PathOf("m.gguf"), folder.PathOf("m.experts"));
  EXPECT_THAT(container.index().precisions[1][0].types,
              ::testing::ElementsAre(TensorType::kQ2_K, TensorType::kQ2_K, TensorType::kQ4_0));
  container.ExpectExperts(1);
}

TEST(PackModel, RefusesAModelWithoutExpertsAndALowerPrecisionThatIsNot) {
  const TempFolder folder;
  const std::string dense = Synth(folder, "tiny-llama", TensorType::kQ8_0);
  EXPECT_THAT(Pack(dense, folder.PathOf("o")).status().message(),
              HasSubstr(dense + ": a model without experts"));
  const std::string model = Synth(folder, "tiny-olmoe", TensorType::kQ4_0);
  for (const TensorType low : {TensorType::kQ4_0, TensorType::kF16}) {
    EXPECT_THAT(Pack(model, folder.PathOf("o"), {.low = low}).status().message(),
                HasSubstr("a smaller type expected"));
  }
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(PackModel, RefusesToWriteOverTheModel) {
  const TempFolder folder;
  const std::string model = Synth(folder, "tiny-olmoe", TensorType::kQ4_0);
  const std::string before = folder.Read("m.gguf");
  EXPECT_EQ(Pack(model, model).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(folder.Read("m.gguf") == before);
}

TEST(PackModel, NamesTensorRowAndElementOfAValueThatIsNoNumber) {
  const TempFolder folder;
  const std::string path = Synth(folder, "tiny-olmoe", TensorType::kF32);
  const GgufModel model = GgufModel::Open(path).value();
  const TensorInfo& tensor = *model.Find("blk.1.ffn_up_exps.weight");
  std::string bytes = folder.Read("m.gguf");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::uint64_t row : {tensor.dims[1] * 2 + 1, tensor.dims[1] * 5}) {
    std::memcpy(&bytes[tensor.offset + (row * tensor.dims[0] + 3) * sizeof(float)], &nan,
                sizeof(nan));
  }
  folder.Write("m.gguf", bytes);
  for (const std::size_t threads : {1, 3}) {
    const Status status =
        Pack(path, folder.PathOf("o"), {.threads = threads, .low = TensorType::kQ4_0}).status();
    EXPECT_THAT(status.message(),
                HasSubstr(fmt::format("{}: tensor 'blk.1.ffn_up_exps.weight', row {}: element 3",
                                      path, tensor.dims[1] * 2 + 1)));
  }
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(PackModel, ReportsProgressUpToTheEnd) {
  const TempFolder folder;
  const std::string model = Synth(folder, "tiny-olmoe", TensorType::kF16);
  Bytes last, total;
  PackOptions options{.low = TensorType::kQ8_0};
  options.progress = [&](Bytes done, Bytes all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  };
  const Result<PackReport> report = Pack(model, folder.PathOf("o"), options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, 2 * report->full);  // F16 panels of whole groups of 16 rows take what rows take
}

}  // namespace
}  // namespace troupe
