// What the same tests on every device (gpu_*_test.cc) do not show of CUDA's: a driver with faults
// that only a driver of ours has (tests/fake_cuda). No card is used.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu/cuda.h"
#include "gpu/device_copies.h"
#include "gpu/driver_call_for_test.h"
#include "gpu/fake_cuda_for_test.h"
#include "gpu/kernel_source.h"
#include "gpu/listing.h"
#include "gpu/usable_gpu.h"
#include "gpu/worker.h"
#include "quant/panel.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr TensorType kCudaType = TensorType::kQ8_0;
constexpr Nanos kUntilHung = 100'000'000, kLongEnough = 60'000'000'000;

class CudaDevices : public testing::Test {
 protected:
  void SetUp() override {
    fake_ = FindFakeCuda();
    if (fake_ == nullptr) GTEST_SKIP() << "the driver is not the one of tests/fake_cuda";
  }
  void TearDown() override {
    if (fake_ == nullptr) return;
    fake_->devices = 1;
    fake_->capability = 120;
    fake_->memory = (2_GiB).count();
    fake_->taken = 0;
    fake_->init_error = fake_->count_error = fake_->compiling_error = fake_->copies_take_us = 0;
    fake_->init_hangs = fake_->compiling_hangs = fake_->work_hangs = fake_->records_fail = false;
    fake_->work_left = -1;
    fake_->work_error = 719;
    WaitForDriverCalls();
    EXPECT_EQ(fake_->buffers + fake_->host_buffers + fake_->modules + fake_->events +
                  fake_->streams + fake_->contexts,
              0)
        << "all that was made is given back";
    fake_->lost = 0;
  }

  // A process that has lost nothing.
  void StartAnew() {
    fake_->work_left = -1;
    fake_->lost = 0;
  }
  static std::unique_ptr<GpuDevice> Open() { return OpenCudaDevice(0).value(); }
  // Of 96 hidden rows at a width of 64.
  static Result<std::unique_ptr<GpuWorker>> MakeWorker(std::uint32_t slots,
                                                       Nanos longest = kLongEnough) {
    TestedGpu gpu{.device = Open()};
    gpu.kernels =
        std::make_unique<GpuKernels>(GpuKernels::Build(*gpu.device, {&kCudaType, 1}).value());
    return GpuWorker::Create(std::move(gpu),
                             {.experts = {.width = 64, .ff = 96, .rows = 4},
                              .answers = 4,
                              .slots = slots,
                              .slot = SlotBytes()},
                             longest);
  }
  static Bytes SlotBytes() {
    return Bytes(2 * PanelBytes(kCudaType, 96, 64) + PanelBytes(kCudaType, 64, 96));
  }
  static GpuWorker::Ask AskOfSlot(std::uint32_t slot) {
    GpuMlp expert;
    expert.gate = {.type = kCudaType, .rows = 96, .cols = 64};
    expert.up = {.type = kCudaType, .rows = 96, .cols = 64, .at = PanelBytes(kCudaType, 96, 64)};
    expert.down = {
        .type = kCudaType, .rows = 64, .cols = 96, .at = 2 * PanelBytes(kCudaType, 96, 64)};
    return {.slot = slot, .expert = expert, .rows = {0}};
  }

  FakeCuda* fake_ = nullptr;
};

TEST_F(CudaDevices, SayWhatTheyAre) {
  const auto infos = ListCudaDevices().value();
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].api, GpuApi::kCuda);
  EXPECT_EQ(infos[0].platform, "NVIDIA CUDA") << "as in OpenCL";
  EXPECT_EQ(ChooseGpus(infos, "nvidia").value(), std::vector<std::size_t>{0});
  EXPECT_EQ(infos[0].driver, "CUDA 13.0");
  EXPECT_EQ(infos[0].bus_place, "0000:01:00.0") << "as OpenCL writes it";
  EXPECT_EQ(infos[0].memory, 2_GiB);
  EXPECT_TRUE(infos[0].has_doubles);
  EXPECT_FALSE(infos[0].shares_memory);
  fake_->devices = 3;
  EXPECT_EQ(ListCudaDevices()->size(), 3u);
}

TEST_F(CudaDevices, AreListedBeforeWhatOpenClHasBeside) {
  const auto found = FindGpus().value();
  EXPECT_EQ(found.front().ways, std::vector<GpuWay>({{GpuApi::kCuda, 0}}));
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_EQ(found[i].info.api, GpuApi::kOpenCl);
}

TEST_F(CudaDevices, APlaceThatTheListLacksIsNotFound) {
  EXPECT_EQ(OpenCudaDevice(1).status().code(), Code::kNotFound);
}

TEST_F(CudaDevices, OfADriverThatDoesNotStartAreNoneAndItSaysWhy) {
  fake_->init_error = 803;
  const Status status = ListCudaDevices().status();
  EXPECT_EQ(status.code(), Code::kUnavailable) << "unlike where there is no driver";
  EXPECT_THAT(status.message(), HasSubstr("no CUDA: cuInit: "));
  EXPECT_THAT(status.message(), HasSubstr("(803)"));
  fake_->init_error = 0;
  fake_->count_error = 999;
  EXPECT_THAT(ListCudaDevices().status().message(), HasSubstr("no CUDA: cuDeviceGetCount: "));
  fake_->count_error = 0;
  fake_->devices = 0;
  EXPECT_THAT(ListCudaDevices().status().message(), HasSubstr("no CUDA: its driver has no device"));
}

TEST_F(CudaDevices, AnOlderCardThanTheKernelsAreForIsNotOpened) {
  fake_->capability = 61;
  const Status status = OpenCudaDevice(0).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("capability 6.1"));
}

TEST_F(CudaDevices, ADriverThatIsOlderThanTheKernelsIsOneLine) {
  fake_->compiling_error = 222;
  const auto device = Open();
  const Status status = device->Build(CommonSource(), kCommonKernels).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("common"));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST_F(CudaDevices, AProgramOrAKernelThatTheBuildLacksIsAStatusThatNamesIt) {
  const auto device = Open();
  const Status program = device->Build({.name = "nonsense"}, {}).status();
  EXPECT_THAT(program.message(), HasSubstr("nonsense"));
  constexpr std::string_view kNames[] = {"Subtract"};
  const Status kernel = device->Build(CommonSource(), kNames).status();
  EXPECT_THAT(kernel.message(), HasSubstr("Subtract"));
}

TEST_F(CudaDevices, GiveNoMoreMemoryThanTheyHaveAndAllOfItAgain) {
  fake_->memory = (4_MiB).count();
  fake_->taken = (1_MiB).count();  // by another process
  const auto device = Open();
  EXPECT_EQ(device->Allocate(4_MiB).status().code(), Code::kResourceExhausted);
  auto most = device->Allocate(3_MiB).value();
  EXPECT_EQ(device->Allocate(1_MiB).status().code(), Code::kResourceExhausted);
  most.reset();
  EXPECT_TRUE(device->Allocate(3_MiB).ok());
}

TEST_F(CudaDevices, AWorkerHasTheSlotsThatThereIsRoomFor) {
  const Bytes beside = GpuExpertMlp::BytesFor({.width = 64, .ff = 96, .rows = 4});
  fake_->memory = (beside + 3 * SlotBytes() + Bytes(1000)).count();
  const auto worker = MakeWorker(8).value();
  EXPECT_EQ(worker->slots(), 3u);
}

TEST_F(CudaDevices, AreReachedFromWhicheverThreadHasThem) {
  std::unique_ptr<GpuDevice> device;
  std::unique_ptr<GpuBuffer> buffer;
  const std::vector<std::byte> bytes(1000, std::byte{7});
  std::thread([&] {
    device = Open();
    buffer = BufferWith(*device, bytes).value();
  }).join();
  std::vector<std::byte> got(bytes.size());
  ASSERT_TRUE(ReadNow(*device, *buffer, got).ok());
  EXPECT_EQ(got, bytes);
  std::thread([&] {
    buffer.reset();
    device.reset();
  }).join();
}

TEST_F(CudaDevices, ALaneWaitsForWhatIsSlowInAnotherOne) {
  const auto device = Open();
  const auto buffer = device->Allocate(1_KiB).value();
  const std::vector<std::byte> bytes(1024, std::byte{9});
  std::vector<std::byte> got(bytes.size());
  fake_->copies_take_us = 20'000;
  const GpuEventPtr in = device->CopyIn(GpuLane::kDemand, bytes, *buffer, Bytes(0), {}).value();
  fake_->copies_take_us = 0;
  const GpuEventPtr out =
      device->CopyOut(GpuLane::kCompute, *buffer, Bytes(0), got, {&in, 1}).value();
  ASSERT_TRUE(out->Wait().ok());
  EXPECT_EQ(got, bytes);
  EXPECT_TRUE(in->Ended());
}

TEST_F(CudaDevices, WorkWhoseEndCannotBeNotedHasEndedWhenTheErrorComes) {
  const auto device = Open();
  const std::vector<std::byte> bytes(1024, std::byte{9});
  const auto buffer = BufferWith(*device, bytes).value();
  std::vector<std::byte> got(bytes.size());
  fake_->copies_take_us = 20'000;
  fake_->records_fail = true;
  EXPECT_FALSE(device->CopyOut(GpuLane::kDemand, *buffer, Bytes(0), got, {}).ok());
  EXPECT_EQ(got, bytes) << "nobody writes there any more";
}

TEST_F(CudaDevices, ALostCardFailsWhatItWasAtAndAllThatFollows) {
  auto device = Open();
  const auto buffer = device->Allocate(1_KiB).value();
  const std::vector<std::byte> bytes(1024);
  fake_->work_left = 1;
  fake_->copies_take_us = 300'000;  // all are handed in before the second one is begun
  std::vector<GpuEventPtr> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back(device->CopyIn(GpuLane::kCompute, bytes, *buffer, Bytes(0), {}).value());
  }
  EXPECT_EQ(events[2]->Wait().code(), Code::kUnavailable);
  EXPECT_EQ(events[1]->Wait().code(), Code::kUnavailable);
  EXPECT_TRUE(events[1]->Ended() && events[2]->Ended()) << "badly";
  EXPECT_EQ(device->CopyIn(GpuLane::kDemand, bytes, *buffer, Bytes(0), {}).status().code(),
            Code::kUnavailable);
  EXPECT_FALSE(device->Allocate(1_KiB).ok());
}

TEST_F(CudaDevices, AWorkerOfALostCardSaysSoAndIsAskedNothingMore) {
  for (const int work : {0, 3, 8}) {
    const auto worker = MakeWorker(2).value();
    worker->SetRows(1);
    fake_->work_left = work;
    const auto job = worker->Begin({AskOfSlot(0)});
    EXPECT_EQ(worker->Wait(job).code(), Code::kUnavailable) << work;
    EXPECT_EQ(worker->status().code(), Code::kUnavailable);
    const std::uint64_t launches = fake_->launches;
    EXPECT_EQ(worker->Wait(worker->Begin({AskOfSlot(1)})).code(), Code::kUnavailable);
    EXPECT_EQ(fake_->launches, launches);
    StartAnew();
  }
}

TEST_F(CudaDevices, AWorkerOfACardThatHangsIsGivenUpAndItsMemoryStaysTheCards) {
  auto worker = MakeWorker(2, kUntilHung).value();
  worker->SetRows(1);
  fake_->work_hangs = true;
  const auto job = worker->Begin({AskOfSlot(0)});
  EXPECT_EQ(worker->Wait(job).code(), Code::kDeadlineExceeded);
  worker.reset();
  EXPECT_GT(fake_->host_buffers, 0) << "the card may still write there";
  fake_->work_hangs = false;
  for (int i = 0; i < 60'000 && fake_->contexts > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(fake_->contexts, 0) << "its thread came back, and gave all of it back";
}

TEST_F(CudaDevices, AreNotThereAgainInAProcessThatHasLostOne) {
  fake_->work_left = 0;
  const std::vector<std::byte> bytes(10);
  EXPECT_EQ(BufferWith(*Open(), bytes).status().code(), Code::kUnavailable);
  fake_->work_left = -1;
  ASSERT_EQ(fake_->contexts, 0);
  const Status again = OpenCudaDevice(0).status();
  EXPECT_EQ(again.code(), Code::kUnavailable);
  EXPECT_THAT(again.message(), HasSubstr("unspecified launch failure (719)"));
  EXPECT_EQ(again.message().find('\n'), std::string::npos);
}

TEST_F(CudaDevices, AreLostByWhateverANewProcessAloneGetsOver) {
  const std::vector<std::byte> bytes(10);
  for (const int error : {214, 220, 700, 702, 714, 715, 716, 717, 718, 719}) {
    fake_->work_left = 0;
    fake_->work_error = error;
    const Status lost = BufferWith(*Open(), bytes).status();
    EXPECT_EQ(lost.code(), Code::kUnavailable) << error;
    EXPECT_THAT(lost.message(), HasSubstr(std::to_string(error)));
    StartAnew();
  }
}

TEST_F(CudaDevices, OfADriverThatHangsWhileItStartsAreNotWaitedForLonger) {
  fake_->init_hangs = true;
  const auto infos = CallWithin(kUntilHung, "which devices there are", ListCudaDevices);
  EXPECT_EQ(infos.status().code(), Code::kDeadlineExceeded);
  fake_->init_hangs = false;
  WaitForDriverCalls();
  EXPECT_TRUE(CallWithin(kLongEnough, "which devices there are", ListCudaDevices).ok());
}

TEST_F(CudaDevices, OfADriverThatHangsWhileItCompilesAreNotWaitedForLonger) {
  fake_->compiling_hangs = true;
  const auto gpu =
      CallWithin(kUntilHung, "a card", [] { return OpenTestedGpu(0, std::span(&kCudaType, 1)); });
  EXPECT_EQ(gpu.status().code(), Code::kDeadlineExceeded);
  fake_->compiling_hangs = false;
}

TEST_F(CudaDevices, ComputeByLaunchesAndCopyByCopies) {
  fake_->launches = fake_->copies_in = fake_->copies_out = fake_->waits = 0;
  const auto worker = MakeWorker(2).value();
  std::ranges::fill(worker->SetRows(1), 1.0f);
  std::ranges::fill(worker->Stage(), std::byte{0});
  ASSERT_TRUE(worker->Wait(worker->BeginWithCopy(AskOfSlot(0), SlotBytes())).ok());
  EXPECT_EQ(fake_->launches, 6u) << "twice 8 bits, three products and a gate";
  EXPECT_EQ(fake_->copies_in, 3u) << "the rows, their numbers and the expert";
  EXPECT_EQ(fake_->copies_out, 1u);
  EXPECT_EQ(fake_->waits, 1u) << "for the expert, which came by another lane";
}

}  // namespace
}  // namespace troupe
