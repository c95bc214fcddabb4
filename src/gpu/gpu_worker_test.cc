#include <gmock/gmock.h>

#include "base/rng.h"
#include "gpu/device_copies.h"
#include "gpu/faulty_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "gpu/worker.h"
#include "quant/panel.h"
#include "quant/random_rows.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr TensorType kWorkerType = TensorType::kQ8_0;
constexpr std::uint32_t kWorkerWidth = 64, kWorkerFf = 96, kWorkerRows = 5;
constexpr int kBuffersBesideSlots = 7;
constexpr Nanos kLong = 60'000'000'000, kShort = 100'000'000;

class GpuWorkerTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (testing::Test::HasFailure() || IsSkipped()) return;
    Rng rng(TestSeed());
    for (int expert = 0; expert < 3; ++expert) bytes_.push_back(RandomExpert(rng));
    rows_.resize(std::size_t{kWorkerRows} * kWorkerWidth);
    for (float& value : rows_) value = static_cast<float>(rng.Normal());
  }

  void Make(std::uint32_t slots, Nanos longest = kLong) {
    worker_ = Create(slots, longest).value();
  }
  Result<std::unique_ptr<GpuWorker>> Create(std::uint32_t slots, Nanos longest = kLong) {
    faults_ = std::make_shared<GpuFaults>();
    std::unique_ptr<TestedGpu> gpu = OpenFaultyGpu({&kWorkerType, 1}, faults_);
    faults_->buffers_left = buffers_;
    return GpuWorker::Create(
        std::move(*gpu),
        {.experts = {.width = kWorkerWidth, .ff = kWorkerFf, .rows = kWorkerRows},
         .answers = 3 * kWorkerRows,
         .slots = slots,
         .slot = Bytes(bytes_[0].size())},
        longest);
  }

  void SetRows() { std::ranges::copy(rows_, worker_->SetRows(kWorkerRows).begin()); }
  Bytes Staged(std::size_t expert) {
    const std::span<std::byte> to = worker_->Stage();
    EXPECT_FALSE(to.empty());
    std::ranges::copy(bytes_[expert], to.begin());
    return Bytes(bytes_[expert].size());
  }
  void Bring(std::size_t expert, std::uint32_t slot) {
    worker_->BeginCopy(slot, Staged(expert));
    std::vector<GpuWorker::Copied> copied;
    while (copied.empty() && worker_->status().ok()) copied = worker_->TakeCopied();
    ASSERT_EQ(copied.size(), 1u);
    EXPECT_EQ(copied[0].slot, slot);
    EXPECT_GT(copied[0].seconds, 0);
  }
  GpuWorker::Ask AskOf(std::uint32_t slot, std::vector<std::uint32_t> rows, std::size_t at) const {
    return {.slot = slot, .expert = mlp_, .rows = std::move(rows), .first_answer = at};
  }
  std::vector<std::uint32_t> Answers(std::size_t first, std::size_t count) const {
    return BitsOf(worker_->answers().subspan(first * kWorkerWidth, count * kWorkerWidth));
  }
  // What the device gives without a worker.
  std::vector<std::uint32_t> Expected(std::size_t expert, std::span<const std::uint32_t> rows) {
    GpuKernels kernels = GpuKernels::Build(device(), {&kWorkerType, 1}).value();
    GpuExpertMlp mlp =
        GpuExpertMlp::Create(kernels, {.width = kWorkerWidth, .ff = kWorkerFf, .rows = kWorkerRows})
            .value();
    const auto slot = BufferWith(device(), bytes_[expert]).value();
    GpuMlp placed = mlp_;
    placed.gate.memory = placed.up.memory = placed.down.memory = slot.get();
    std::vector<float> out(rows.size() * kWorkerWidth);
    EXPECT_TRUE(mlp.SetRows(rows_).ok());
    EXPECT_TRUE(mlp.Run(placed, rows, out, {}).value()->Wait().ok());
    return BitsOf(out);
  }

  int buffers_ = -1;
  std::shared_ptr<GpuFaults> faults_;
  std::unique_ptr<GpuWorker> worker_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<float> rows_;
  GpuMlp mlp_;

 private:
  std::vector<std::byte> RandomExpert(Rng& rng) {
    std::vector<std::byte> bytes;
    const auto add = [&](std::uint32_t rows, std::uint32_t cols) {
      const std::size_t at = bytes.size();
      bytes.resize(at + PanelBytes(kWorkerType, rows, cols));
      PackPanels(kWorkerType, rows, cols, RandomRows(kWorkerType, rows, cols, rng),
                 std::span(bytes).subspan(at));
      return GpuMatrix{.type = kWorkerType, .rows = rows, .cols = cols, .at = at};
    };
    mlp_.gate = add(kWorkerFf, kWorkerWidth);
    mlp_.up = add(kWorkerFf, kWorkerWidth);
    mlp_.down = add(kWorkerWidth, kWorkerFf);
    return bytes;
  }
};

TEST_F(GpuWorkerTest, AnswersRowsByTheExpertsInItsSlots) {
  Make(2);
  Bring(0, 1);
  Bring(1, 0);
  SetRows();
  const auto job = worker_->Begin({AskOf(1, {4, 0}, 0), AskOf(0, {0, 1, 2, 3, 4}, 2)});
  ASSERT_TRUE(worker_->Wait(job).ok());
  EXPECT_EQ(Answers(0, 2), Expected(0, std::vector<std::uint32_t>{4, 0}));
  EXPECT_EQ(Answers(2, 5), Expected(1, std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_GT(worker_->SecondsOf(job), 0);
}

TEST_F(GpuWorkerTest, AnswersByAnExpertThatComesWithTheQuestion) {
  Make(2);
  Bring(0, 0);
  SetRows();
  const auto first = worker_->Begin({AskOf(0, {2}, 0)});
  const Bytes bytes = Staged(2);
  const auto second = worker_->BeginWithCopy(AskOf(1, {1, 2}, 1), bytes);
  ASSERT_TRUE(worker_->Wait(second).ok());
  EXPECT_EQ(worker_->Ended(first), OkStatus()) << "jobs end in their order";
  EXPECT_EQ(Answers(0, 1), Expected(0, std::vector<std::uint32_t>{2}));
  EXPECT_EQ(Answers(1, 2), Expected(2, std::vector<std::uint32_t>{1, 2}));
}

TEST_F(GpuWorkerTest, TakesLayerAfterLayer) {
  Make(2);
  Bring(0, 0);
  for (int layer = 0; layer < 20; ++layer) {
    for (float& value : rows_) value = -value * 1.01f;
    SetRows();
    ASSERT_TRUE(worker_->Wait(worker_->Begin({AskOf(0, {3}, 0)})).ok());
    ASSERT_EQ(Answers(0, 1), Expected(0, std::vector<std::uint32_t>{3})) << layer;
  }
}

TEST_F(GpuWorkerTest, HasFewerSlotsWhereTheDeviceIsFull) {
  buffers_ = kBuffersBesideSlots + 3;
  Make(8);
  EXPECT_EQ(worker_->slots(), 3u);
  buffers_ = kBuffersBesideSlots + 1;
  EXPECT_EQ(Create(8).status().code(), Code::kResourceExhausted) << "one slot is no tier";
}

TEST_F(GpuWorkerTest, StagesAsManyCopiesAsItHasMemoryFor) {
  Make(2);
  faults_->hangs = true;
  faults_->work_left = 0;
  worker_->BeginCopy(0, Staged(0));
  worker_->BeginCopy(1, Staged(1));
  EXPECT_TRUE(worker_->Stage().empty());
  faults_->hangs = false;
}

TEST_F(GpuWorkerTest, AFailureEndsAJobAndAllThatFollow) {
  for (int work = 0; work < 10; ++work) {
    Make(2);
    Bring(0, 0);
    SetRows();
    faults_->work_left = work;
    const auto first = worker_->Begin({AskOf(0, {1}, 0)});
    const auto second = worker_->Begin({AskOf(0, {2}, 1)});
    EXPECT_EQ(worker_->Wait(second).code(), Code::kUnavailable) << work;
    EXPECT_EQ(worker_->Wait(first).code(), work < 9 ? Code::kUnavailable : Code::kOk)
        << "9 pieces of work are a job that brings its rows";
    EXPECT_EQ(worker_->status().code(), Code::kUnavailable);
    faults_->work_left = -1;
    EXPECT_EQ(worker_->Wait(worker_->Begin({AskOf(0, {2}, 1)})).code(), Code::kUnavailable)
        << "what has failed once is not asked again";
    EXPECT_TRUE(worker_->Stage().empty());
  }
}

TEST_F(GpuWorkerTest, ACopyThatFailsIsItsStatus) {
  Make(2);
  faults_->work_left = 0;
  worker_->BeginCopy(0, Staged(0));
  while (worker_->status().ok()) std::this_thread::yield();
  EXPECT_EQ(worker_->status().code(), Code::kUnavailable);
  EXPECT_TRUE(worker_->TakeCopied().empty());
}

TEST_F(GpuWorkerTest, ADeviceThatHangsHoldsNobodyLongerThanItMay) {
  Make(2, kShort);
  Bring(0, 0);
  SetRows();
  faults_->hangs = true;
  faults_->work_left = 3;
  const auto job = worker_->Begin({AskOf(0, {1}, 0)});
  EXPECT_EQ(worker_->Wait(job).code(), Code::kDeadlineExceeded);
  EXPECT_THAT(worker_->status().message(), testing::HasSubstr("no answer within 0.1 s"));
  worker_.reset();
  EXPECT_FALSE(faults_->gone) << "its memory is the device's for as long as that may write to it";
  faults_->hangs = false;
  EXPECT_TRUE(faults_->WaitUntilGone());
}

}  // namespace
}  // namespace troupe
