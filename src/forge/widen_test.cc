#include "forge/widen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "model/config.h"
#include "quant/dequantize.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

std::vector<float> FloatsOf(const GgufModel& model, std::string_view name) {
  const TensorInfo& tensor = *model.Find(name);
  std::vector<std::byte> bytes(tensor.bytes.count());
  EXPECT_TRUE(model.ReadTensor(tensor, bytes).ok());
  std::vector<float> floats(tensor.ElementCount());
  DequantizeRow(tensor.type, bytes, floats);
  return floats;
}

// Element [expert][row][column] of the narrow tensor, at the same indices in the wide one, zero
// where the wide one has more.
void ExpectGrownByZeros(const GgufModel& narrow, const GgufModel& wide, std::string_view name) {
  const TensorInfo& small = *narrow.Find(name);
  const TensorInfo& large = *wide.Find(name);
  const std::vector<float> from = FloatsOf(narrow, name), to = FloatsOf(wide, name);
  std::uint64_t at = 0, wrong = 0;
  for (std::uint64_t i = 0; i < large.dims[2]; ++i) {
    for (std::uint64_t row = 0; row < large.dims[1]; ++row) {
      for (std::uint64_t column = 0; column < large.dims[0]; ++column, ++at) {
        const bool inside = row < small.dims[1] && column < small.dims[0];
        wrong += to[at] != (inside ? from[(i * small.dims[1] + row) * small.dims[0] + column] : 0);
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << name;
}

// What the gaps are filled with.
TEST(ZeroBytes, AreZeroWeightsInEveryType) {
  for (const TensorTypeInfo& type : AllTensorTypes()) {
    const std::vector<std::byte> bytes(RowBytes(type.type, 512).count());
    std::vector<float> row(512, 1.0f);
    DequantizeRow(type.type, bytes, row);
    EXPECT_EQ(row, std::vector<float>(512, 0.0f)) << type.name;
  }
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, GrowsItsExpertsByZerosAndNothingElse) {
  const TempFolder folder;
  ASSERT_TRUE(Synthesize(*FindShape(GetParam()), {.layout = {.mix = {.type = TensorType::kQ8_0}}},
                         folder.PathOf("narrow"))
                  .ok());
  const GgufModel narrow = GgufModel::Open(folder.PathOf("narrow")).value();
  const Result<Bytes> bytes = WidenExperts(narrow, 3, folder.PathOf("wide"), nullptr);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const GgufModel wide = GgufModel::Open(folder.PathOf("wide")).value();
  EXPECT_EQ(wide.file_bytes(), *bytes);

  const ModelConfig before = ReadModelConfig(narrow.metadata()).value();
  const Result<ModelConfig> after = ReadModelConfig(wide.metadata());
  ASSERT_TRUE(after.ok()) << after.status().ToString();
  EXPECT_EQ(after->moe.expert_ff, 3 * before.moe.expert_ff);
  for (const TensorInfo& tensor : narrow.tensors()) {
    ExpectGrownByZeros(narrow, wide, tensor.name);
    const bool is_expert = tensor.name.find("_exps.") != std::string::npos &&
                           tensor.name.find("_down_exps.bias") == std::string::npos;
    const std::uint64_t times = is_expert ? 3 : 1;
    if (tensor.name.find("_shexp.") == std::string::npos) {
      EXPECT_EQ(wide.Find(tensor.name)->ElementCount(), times * tensor.ElementCount());
    }
  }
  const auto shared_growth = after->moe.shared_ff / std::max(1u, before.moe.shared_ff);
  if (before.moe.shared_ff > 0) {
    const std::string name = "blk.1.ffn_down_shexp.weight";
    EXPECT_EQ(wide.Find(name)->dims[0], shared_growth * narrow.Find(name)->dims[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamily,
                         ::testing::Values("tiny-mixtral", "tiny-qwen2moe", "tiny-qwen3moe",
                                           "tiny-olmoe", "tiny-deepseek", "tiny-deepseek2",
                                           "tiny-qwen35moe", "tiny-gpt-oss", "tiny-lfm2moe",
                                           "tiny-granitemoe-shared", "tiny-granitehybrid",
                                           "tiny-nemotron_h_moe"));

TEST(WidenExperts, RefusesAModelWithoutExperts) {
  const TempFolder folder;
  ASSERT_TRUE(Synthesize(*FindShape("tiny-llama"), {}, folder.PathOf("dense")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("dense")).value();
  const Result<Bytes> bytes = WidenExperts(model, 2, folder.PathOf("wide"), nullptr);
  EXPECT_THAT(bytes.status().message(), ::testing::HasSubstr("no experts to widen"));
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(WidenExperts, RefusesTwoMatricesInOneTensor) {
  const TempFolder folder;
  ASSERT_TRUE(Synthesize(*FindShape("tiny-gemma4"), {}, folder.PathOf("fused")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("fused")).value();
  const Result<Bytes> bytes = WidenExperts(model, 2, folder.PathOf("wide"), nullptr);
  EXPECT_THAT(bytes.status().message(),
              ::testing::HasSubstr("'blk.0.ffn_gate_up_exps.weight' holds two matrices"));
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(WidenExperts, RefusesToWriteOverItsInput) {
  const TempFolder folder;
  ASSERT_TRUE(Synthesize(*FindShape("tiny-olmoe"), {}, folder.PathOf("m")).ok());
  const GgufModel model = GgufModel::Open(folder.PathOf("m")).value();
  EXPECT_EQ(WidenExperts(model, 2, folder.PathOf("m"), nullptr).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
