#include "gpu/usable_gpu.h"

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
