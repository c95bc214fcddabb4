#include "runtime/recorded_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "io/text_file.h"
#include "model/tiny_model_for_test.h"
#include "model/weight_loader.h"
#include "store/model_checksums.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class RecordedSumsTest : public testing::Test {
 protected:
  // A model in a folder of its own, with its sums.
  void Make(const std::string& shape) {
    made_ = std::make_unique<TinyModel>(shape);
    std::filesystem::copy_file(made_->file().path(), path_);
    const GgufModel model = GgufModel::Open(path_).value();
    const ModelChecksums sums = SumModel(model, 2).value();
    ASSERT_TRUE(WriteWholeText(ChecksumsPathBeside(path_), ChecksumsText(sums)).ok());
  }

  // One bit of a tensor.
  void Damage(const TensorInfo& tensor, std::uint64_t at) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(tensor.offset + at));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(tensor.offset + at));
    file.put(byte);
  }

  Status Load(RoutedExperts experts = RoutedExperts::kResident) {
    const GgufModel model = GgufModel::Open(path_).value();
    const std::unique_ptr<RecordedSums> sums = RecordedSums::Beside(model);
    compared_ = sums != nullptr;
    return LoadWeights(model, made_->config(), made_->AllLayers(), experts, threads_, {},
                       sums.get())
        .status();
  }

  TempFolder folder_;
  std::string path_ = folder_.PathOf("m.gguf");
  std::unique_ptr<TinyModel> made_;
  ThreadPool threads_{3};
  bool compared_ = false;
};

TEST_F(RecordedSumsTest, AChangedBitOfAnyTensorThatIsLoadedIsFoundAndNamed) {
  for (const std::string shape :
       {"tiny-qwen2moe", "tiny-deepseek2", "tiny-gemma4", "tiny-qwen35moe"}) {
    SCOPED_TRACE(shape);
    std::filesystem::remove(path_);
    ASSERT_NO_FATAL_FAILURE(Make(shape));
    EXPECT_TRUE(Load().ok());
    EXPECT_TRUE(compared_);
    const GgufModel model = GgufModel::Open(path_).value();
    std::size_t found = 0, left_out = 0;
    for (const TensorInfo& tensor : model.tensors()) {
      const std::uint64_t at = tensor.bytes.count() * 2 / 3;
      Damage(tensor, at);
      const Status status = Load();
      Damage(tensor, at);
      if (status.ok()) {
        // Of a layer behind the last one, which guesses a further token.
        EXPECT_THAT(tensor.name, HasSubstr(fmt::format("blk.{}.", made_->config().layers)));
        ++left_out;
        continue;
      }
      EXPECT_THAT(status.message(), HasSubstr("tensor '" + tensor.name + "'"));
      ++found;
    }
    EXPECT_GT(found, 10u);
    EXPECT_LT(left_out, found);
    EXPECT_TRUE(Load().ok());
  }
}

TEST_F(RecordedSumsTest, ExpertsThatLieElsewhereAreNotCompared) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  const GgufModel model = GgufModel::Open(path_).value();
  Damage(*model.Find("blk.1.ffn_up_exps.weight"), 100);
  EXPECT_TRUE(Load(RoutedExperts::kElsewhere).ok());
  EXPECT_THAT(Load(RoutedExperts::kResident).message(),
              HasSubstr("'blk.1.ffn_up_exps.weight', expert 0"));
  Damage(*model.Find("output_norm.weight"), 5);
  EXPECT_THAT(Load(RoutedExperts::kElsewhere).message(), HasSubstr("'output_norm.weight'"));
}

TEST_F(RecordedSumsTest, SumsThatAreDamagedOrOfAnotherModelCompareNothing) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  const std::string path = ChecksumsPathBeside(path_);
  const ModelChecksums sums = ParseChecksums(path, ReadWholeText(path, 1_MiB).value()).value();
  ModelChecksums others = sums;
  others.tensors.back().name = "another";
  for (const std::string& text : {std::string("{"), ChecksumsText(others)}) {
    ASSERT_TRUE(WriteWholeText(path, text).ok());
    EXPECT_TRUE(Load().ok());
    EXPECT_FALSE(compared_);
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(Load().ok());
  EXPECT_FALSE(compared_);
}

}  // namespace
}  // namespace troupe
