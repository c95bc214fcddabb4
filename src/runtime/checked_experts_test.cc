#include "runtime/checked_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "io/text_file.h"
#include "model/tiny_model_for_test.h"
#include "runtime/engine.h"
#include "runtime/plan_model.h"
#include "runtime/recorded_sums.h"
#include "runtime/session.h"
#include "store/model_checksums.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Those beside a model, and how often a matrix was compared with them.
class CountedSums final : public WeightChecks {
 public:
  explicit CountedSums(const std::string& model)
      : sums_(RecordedSums::Beside(GgufModel::Open(model).value())) {}

  std::unique_ptr<MatrixCheck> Begin(const TensorInfo& tensor,
                                     std::uint64_t matrix) const override {
    compared_.fetch_add(1);
    return sums_->Begin(tensor, matrix);
  }

  int compared() const { return compared_.load(); }

 private:
  std::unique_ptr<RecordedSums> sums_;
  mutable std::atomic<int> compared_{0};
};

class CheckedExpertsTest : public testing::Test {
 protected:
  // A model in a folder of its own, with its sums.
  void Make(const std::string& shape) {
    std::filesystem::remove(path_);
    made_.emplace(shape);
    std::filesystem::copy_file(made_->path(), path_);
    const GgufModel model = GgufModel::Open(path_).value();
    const ModelChecksums sums = SumModel(model, 2).value();
    ASSERT_TRUE(WriteWholeText(ChecksumsPathBeside(path_), ChecksumsText(sums)).ok());
    layouts_ = MeasureWeights(made_->file(), made_->config()).value().experts;
  }

  CheckedExperts Checked() const {
    return CheckedExperts(RecordedSums::Beside(GgufModel::Open(path_).value()), layouts_);
  }

  // Where an expert's matrix begins in the file.
  static std::uint64_t BeginOf(const ExpertMatrix& matrix, std::uint32_t expert) {
    return matrix.tensor->offset +
           expert * matrix.tensor_rows * RowBytes(matrix.type, matrix.cols).count();
  }

  Status Check(CheckedExperts& checked, ExpertId id) const {
    const GgufModel model = GgufModel::Open(path_).value();
    std::vector<std::vector<std::byte>> read;
    for (const ExpertMatrix& matrix : layouts_[id.layer].matrices) {
      std::vector<std::byte>& part = read.emplace_back(matrix.SourceBytes());
      const std::uint64_t row = RowBytes(matrix.type, matrix.cols).count();
      EXPECT_TRUE(
          model.ReadRange(*model.Find(matrix.tensor->name), matrix.FirstRow(id.expert) * row, part)
              .ok());
    }
    const std::vector<std::span<const std::byte>> parts(read.begin(), read.end());
    const std::unique_ptr<ArrivalCheck> check = checked.Begin(id);
    if (check == nullptr) return OkStatus();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const std::size_t first = parts[part].size() / 3;  // as they may come
      check->Add(part, parts[part].first(first));
      check->Add(part, parts[part].subspan(first));
    }
    return check->Finish();
  }

  void Flip(std::uint64_t at) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  std::uint32_t FirstMoeLayer() const {
    std::uint32_t layer = 0;
    while (layouts_[layer].empty()) ++layer;
    return layer;
  }

  // A token through all layers, with a single expert of each in memory at a time.
  Status RunInPlace() {
    EngineOptions options{.threads = 2, .context = 64, .memory = 4_GiB};
    options.offload.slots = 12;
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Open(path_, options));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    std::vector<std::int32_t> tokens(48);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 3);
    return session.FeedPrompt(tokens);
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.gguf");
  std::optional<TinyModel> made_;
  ExpertLayouts layouts_;
};

TEST_F(CheckedExpertsTest, AChangedBitOfAnyMatrixIsFoundWithFilePlaceAndBothSums) {
  for (const std::string shape : {"tiny-qwen2moe", "tiny-deepseek2", "tiny-gemma4"}) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(Make(shape));
    const ExpertId id{FirstMoeLayer(), 1};
    for (const ExpertMatrix& matrix : layouts_[id.layer].matrices) {
      CheckedExperts checked = Checked();
      const std::uint64_t begin = BeginOf(matrix, id.expert);
      const std::uint64_t at = begin +
                               matrix.rows_before * RowBytes(matrix.type, matrix.cols).count() +
                               matrix.SourceBytes() - 1;
      Flip(at);
      const Status status = Check(checked, id);
      EXPECT_EQ(status.code(), Code::kDataLoss);
      EXPECT_THAT(status.message(), HasSubstr(fmt::format("{}, byte {}: tensor '{}', expert 1: "
                                                          "checksum ",
                                                          path_, begin, matrix.tensor->name)));
      EXPECT_THAT(status.message(), HasSubstr("expected by " + ChecksumsPathBeside(path_)));
      EXPECT_EQ(checked.verified(), 0u);
      Flip(at);
      EXPECT_TRUE(Check(checked, id).ok());
      EXPECT_EQ(checked.verified(), 1u);
    }
  }
}

TEST_F(CheckedExpertsTest, AnExpertThatWasRightIsNotComparedAgain) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  const auto sums = std::make_shared<CountedSums>(path_);
  CheckedExperts checked(sums, layouts_);
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(Check(checked, {1, 2}).ok());
  EXPECT_EQ(sums->compared(), 3);  // gate, up and down
  EXPECT_EQ(checked.verified(), 1u);
}

TEST_F(CheckedExpertsTest, ADamagedExpertIsRefusedEveryTime) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  CheckedExperts checked = Checked();
  Flip(BeginOf(layouts_[1].matrices[0], 2));
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Check(checked, {1, 2}).code(), Code::kDataLoss);
  EXPECT_TRUE(Check(checked, {1, 3}).ok());
  EXPECT_EQ(checked.verified(), 1u);
}

TEST_F(CheckedExpertsTest, AnExpertThatThreadsReadAtOnceCountsOnce) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-gemma4"));
  CheckedExperts checked = Checked();
  const std::uint32_t experts = made_->config().moe.routing.experts;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (std::uint32_t layer = 0; layer < layouts_.size(); ++layer) {
        if (layouts_[layer].empty()) continue;
        for (std::uint32_t e = 0; e < experts; ++e) EXPECT_TRUE(Check(checked, {layer, e}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto empty = std::ranges::count_if(layouts_, [](const auto& l) { return l.empty(); });
  EXPECT_EQ(checked.verified(), (layouts_.size() - static_cast<std::size_t>(empty)) * experts);
}

TEST_F(CheckedExpertsTest, WithoutSumsNothingIsCompared) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  std::filesystem::remove(ChecksumsPathBeside(path_));
  CheckedExperts checked = Checked();
  Flip(BeginOf(layouts_[0].matrices[1], 0));
  EXPECT_TRUE(Check(checked, {0, 0}).ok());
  EXPECT_EQ(checked.verified(), 0u);
}

TEST_F(CheckedExpertsTest, AnEngineThatReadsADamagedExpertInPlaceSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Make("tiny-olmoe"));
  EXPECT_TRUE(RunInPlace().ok());
  const std::uint32_t experts = made_->config().moe.routing.experts;
  for (std::uint32_t e = 0; e < experts; ++e) Flip(BeginOf(layouts_[1].matrices[2], e) + 7);
  const Status status = RunInPlace();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(path_ + ", byte "));
  EXPECT_THAT(status.message(), HasSubstr("tensor 'blk.1.ffn_down_exps.weight', expert "));
}

TEST_F(CheckedExpertsTest, ThePlanCountsTheSumsWhereExpertsAreReadInPlace) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed: each plan finds more held";
  ASSERT_NO_FATAL_FAILURE(Make("tiny-qwen2moe"));
  const GgufModel model = GgufModel::Open(path_).value();
  const std::string sums = ChecksumsPathBeside(path_), away = sums + ".away";
  const Bytes more = RecordedSums::BytesBeside(model) + CheckedExperts::BytesFor(layouts_);
  ASSERT_GT(more, 8_KiB);
  EngineOptions options{.threads = 1, .context = 64, .memory = 4_GiB};
  options.offload.slots = 12;
  // What the process holds is a part of a plan, and may change between two of them.
  for (int i = 0; i < 20; ++i) {
    std::filesystem::rename(sums, away);
    const Bytes before = PlanModel(path_, options).value().plan.memory.program;
    std::filesystem::rename(away, sums);
    const Bytes with = PlanModel(path_, options).value().plan.memory.program;
    std::filesystem::rename(sums, away);
    const Bytes after = PlanModel(path_, options).value().plan.memory.program;
    std::filesystem::rename(away, sums);
    if (before != after) continue;
    EXPECT_EQ(with - before, more);
    return;
  }
  FAIL() << "the process never held the same twice";
}

}  // namespace
}  // namespace troupe
