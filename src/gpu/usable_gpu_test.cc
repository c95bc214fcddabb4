#include "gpu/usable_gpu.h"

#include "base/log.h"
#include "gpu/gpu_for_test.h"

namespace troupe {
namespace {

using Places = std::vector<std::size_t>;

std::vector<GpuInfo> TwoCardsAndADriverOnTheProcessor() {
  return {{.name = "NVIDIA GeForce RTX 3060", .platform = "NVIDIA CUDA"},
          {.name = "pthread-cpu", .platform = "Portable Computing Language", .is_processor = true},
          {.name = "gfx1100", .platform = "AMD Accelerated Parallel Processing"}};
}

TEST(ChooseGpus, AutoMeansEveryCardAndNoDriverOnTheProcessor) {
  EXPECT_EQ(ChooseGpus(TwoCardsAndADriverOnTheProcessor(), "auto").value(), (Places{0, 2}));
  EXPECT_EQ(ChooseGpus({}, "auto").value(), Places{});
}

TEST(ChooseGpus, NoneMeansNoDevice) {
  EXPECT_EQ(ChooseGpus(TwoCardsAndADriverOnTheProcessor(), "none").value(), Places{});
}

TEST(ChooseGpus, ANameIsAPartOfADevicesOrItsPlatformsInAnyCase) {
  const auto infos = TwoCardsAndADriverOnTheProcessor();
  EXPECT_EQ(ChooseGpus(infos, "rtx 3060").value(), Places{0});
  EXPECT_EQ(ChooseGpus(infos, "PORTABLE").value(), Places{1});
  EXPECT_EQ(ChooseGpus(infos, "c").value(), (Places{0, 1, 2}));
}

TEST(ChooseGpus, ANameThatNoDeviceHasIsAnErrorThatNamesThem) {
  const Status status = ChooseGpus(TwoCardsAndADriverOnTheProcessor(), "Arc").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(),
            "no device is called 'Arc'; there is 'NVIDIA GeForce RTX 3060', 'pthread-cpu', "
            "'gfx1100'");
  EXPECT_EQ(ChooseGpus({}, "Arc").status().message(), "no device is called 'Arc'; there is none");
}

TEST(ChooseGpus, ANameThatNoDeviceHasIsAnErrorThatSaysWhatIsWrongWithCuda) {
  auto infos = TwoCardsAndADriverOnTheProcessor();
  infos.erase(infos.begin(), infos.end() - 1);
  infos[0].why_no_cuda = "no CUDA: cuInit: mismatch (803)";
  EXPECT_EQ(ChooseGpus(infos, "rtx").status().message(),
            "no device is called 'rtx'; there is 'gfx1100'; no CUDA: cuInit: mismatch (803)");
}

constexpr GpuWay kBothWays[] = {{GpuApi::kCuda, 1}, {GpuApi::kOpenCl, 4}};

TEST(OpenByFirst, TriesTheNextWayWhereTheFirstDoesNotOpenAndSaysSo) {
  std::vector<std::string> warnings;
  SetWarningSink([&](std::string_view line) { warnings.emplace_back(line); });
  std::vector<GpuWay> tried;
  const auto gpu = OpenByFirst(kBothWays, [&](const GpuWay& way) -> Result<TestedGpu> {
    tried.push_back(way);
    if (way.api == GpuApi::kCuda) return Error(Code::kUnimplemented, "its CUDA is too old");
    return TestedGpu();
  });
  SetWarningSink({});
  EXPECT_TRUE(gpu.ok());
  EXPECT_EQ(tried, std::vector<GpuWay>(std::begin(kBothWays), std::end(kBothWays)));
  EXPECT_EQ(warnings,
            std::vector<std::string>{"a card is reached through OpenCL: its CUDA is too old"});
}

TEST(OpenByFirst, SaysWhyACardOfNvidiasIsReachedByOpenClAlone) {
  std::vector<std::string> warnings;
  SetWarningSink([&](std::string_view line) { warnings.emplace_back(line); });
  auto infos = TwoCardsAndADriverOnTheProcessor();
  for (GpuInfo& info : infos) {
    info.why_no_cuda = "no CUDA: cuInit: mismatch (803)";
    EXPECT_TRUE(OpenByFirst(
                    std::span(kBothWays).last(1),
                    [](const GpuWay&) -> Result<TestedGpu> { return TestedGpu(); },
                    WhyNotByCuda(info))
                    .ok());
  }
  SetWarningSink({});
  EXPECT_EQ(
      warnings,
      std::vector<std::string>{"a card is reached through OpenCL: no CUDA: cuInit: mismatch (803)"})
      << "and nothing of other vendors' devices";
  EXPECT_TRUE(WhyNotByCuda(TwoCardsAndADriverOnTheProcessor()[0]).ok());
}

TEST(OpenByFirst, SaysWhyTheFirstWayDoesNotOpenWhereNoneDoes) {
  const auto gpu = OpenByFirst(kBothWays, [](const GpuWay& way) -> Result<TestedGpu> {
    return Error(Code::kUnavailable, "way to {}", way.place);
  });
  EXPECT_EQ(gpu.status().message(), "way to 1");
}

TEST(OpenByFirst, TriesACardThatComputesSomethingElseNoOtherWay) {
  int tried = 0;
  const auto gpu = OpenByFirst(kBothWays, [&](const GpuWay&) -> Result<TestedGpu> {
    ++tried;
    return Error(Code::kFailedPrecondition, "one bit differs");
  });
  EXPECT_EQ(gpu.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(tried, 1);
  const auto last = OpenByFirst(kBothWays, [&](const GpuWay& way) -> Result<TestedGpu> {
    if (way.api == GpuApi::kCuda) return Error(Code::kUnimplemented, "its CUDA is too old");
    return Error(Code::kFailedPrecondition, "one bit differs");
  });
  EXPECT_EQ(last.status().message(), "one bit differs");
}

class OpenTestedGpus : public GpuTest {};

TEST_F(OpenTestedGpus, GivesKernelsForTheTypesThatWereAskedFor) {
  const TensorType type = TensorType::kQ5_0;
  bool opened = false;
  for (std::size_t i = 0; i < ListGpus()->size() && !opened; ++i) {
    const auto gpu = OpenTestedGpu(i, {&type, 1});
    opened = gpu.ok() && gpu->device->info().name == device().info().name &&
             &gpu->kernels->device() == gpu->device.get();
  }
  EXPECT_TRUE(opened);
}

}  // namespace
}  // namespace troupe
