#include "gpu/listing.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using Ways = std::vector<GpuWay>;

GpuInfo CudaCard(std::string name, std::string bus_place) {
  return {.name = std::move(name),
          .platform = "NVIDIA CUDA",
          .api = GpuApi::kCuda,
          .bus_place = std::move(bus_place)};
}
GpuInfo OpenClCard(std::string name, std::string platform, std::string bus_place) {
  return {
      .name = std::move(name), .platform = std::move(platform), .bus_place = std::move(bus_place)};
}
GpuWay ByCuda(std::size_t place) { return {GpuApi::kCuda, place}; }
GpuWay ByOpenCl(std::size_t place) { return {GpuApi::kOpenCl, place}; }

constexpr const char* kNvidiasOpenCl = "NVIDIA CUDA";

TEST(EachCardOnce, ACardThatBothReachIsListedOnceAndOpenedByCudaFirst) {
  const GpuInfo cuda[] = {CudaCard("RTX 3060", "0000:01:00.0")};
  const GpuInfo opencl[] = {OpenClCard("pthread-cpu", "Portable Computing Language", ""),
                            OpenClCard("RTX 3060", kNvidiasOpenCl, "0000:01:00.0")};
  const auto listed = EachCardOnce(cuda, opencl);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].info.api, GpuApi::kCuda);
  EXPECT_EQ(listed[0].ways, (Ways{ByCuda(0), ByOpenCl(1)}));
  EXPECT_EQ(listed[1].info.name, "pthread-cpu");
  EXPECT_EQ(listed[1].ways, Ways{ByOpenCl(0)});
}

TEST(EachCardOnce, TwoCardsOfOneNameAreToldApartByTheirPlacesOnTheBus) {
  const GpuInfo cuda[] = {CudaCard("RTX 3060", "0000:01:00.0"),
                          CudaCard("RTX 3060", "0000:02:00.0")};
  const GpuInfo opencl[] = {OpenClCard("RTX 3060", kNvidiasOpenCl, "0000:02:00.0"),
                            OpenClCard("RTX 3060", kNvidiasOpenCl, "0000:01:00.0")};
  const auto listed = EachCardOnce(cuda, opencl);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].ways, (Ways{ByCuda(0), ByOpenCl(1)}));
  EXPECT_EQ(listed[1].ways, (Ways{ByCuda(1), ByOpenCl(0)}));
}

TEST(EachCardOnce, WithoutAPlaceOnTheBusNvidiasOpenClMeansTheCardOfThatNameEachOnce) {
  const GpuInfo cuda[] = {CudaCard("RTX 3060", "0000:01:00.0"), CudaCard("RTX 3060", "")};
  const GpuInfo opencl[] = {
      OpenClCard("RTX 3060", kNvidiasOpenCl, ""), OpenClCard("RTX 3060", kNvidiasOpenCl, ""),
      OpenClCard("RTX 3060", kNvidiasOpenCl, ""), OpenClCard("RTX 4090", kNvidiasOpenCl, "")};
  const auto listed = EachCardOnce(cuda, opencl);
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[0].ways, (Ways{ByCuda(0), ByOpenCl(0)}));
  EXPECT_EQ(listed[1].ways, (Ways{ByCuda(1), ByOpenCl(1)}));
  EXPECT_EQ(listed[2].ways, Ways{ByOpenCl(2)}) << "a third one, which CUDA was told not to show";
  EXPECT_EQ(listed[3].ways, Ways{ByOpenCl(3)});
}

TEST(EachCardOnce, AnotherVendorsDeviceOfTheSameNameStays) {
  const GpuInfo cuda[] = {CudaCard("a card", "")};
  const GpuInfo opencl[] = {OpenClCard("a card", "Portable Computing Language", "")};
  EXPECT_EQ(EachCardOnce(cuda, opencl).size(), 2u);
  EXPECT_EQ(EachCardOnce({}, opencl).size(), 1u);
  EXPECT_EQ(EachCardOnce(cuda, {}).size(), 1u);
}

TEST(EachCardOnce, AnotherPlaceOnTheBusIsAnotherCard) {
  const GpuInfo cuda[] = {CudaCard("RTX 3060", "0000:01:00.0")};
  const GpuInfo opencl[] = {OpenClCard("RTX 3060", kNvidiasOpenCl, "0000:02:00.0")};
  EXPECT_EQ(EachCardOnce(cuda, opencl).size(), 2u) << "CUDA was told not to show it";
}

using Infos = Result<std::vector<GpuInfo>>;

TEST(ListingOf, KeepsWhyADriverOfCudaThatIsHereGivesNoDevice) {
  const Infos opencl = std::vector{OpenClCard("pthread-cpu", "Portable Computing Language", "")};
  const auto why = [&](Infos cuda) { return ListingOf(cuda, opencl)->back().info.why_no_cuda; };
  EXPECT_EQ(why(Error(Code::kUnavailable, "no CUDA: cuInit: mismatch (803)")),
            "no CUDA: cuInit: mismatch (803)");
  EXPECT_EQ(why(Error(Code::kNotFound, "no CUDA: built without nvcc")), "");
  EXPECT_EQ(why(std::vector{CudaCard("RTX 3060", "")}), "");
}

TEST(ListingOf, OfNoDeviceSaysWhyOfBoth) {
  const auto none = ListingOf(Error(Code::kUnavailable, "no CUDA: cuInit: mismatch (803)"),
                              Error(Code::kNotFound, "no OpenCL: no driver"));
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  EXPECT_EQ(none.status().message(), "no OpenCL: no driver; no CUDA: cuInit: mismatch (803)");
}

TEST(FindGpus, GivesAtLeastOneOrSaysWhyOfBothKindsOfDrivers) {
  const auto found = FindGpus();
  if (found.ok()) {
    ASSERT_FALSE(found->empty());
    for (const ListedGpu& gpu : *found) EXPECT_EQ(gpu.info.api, gpu.ways.front().api);
    return;
  }
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_NE(found.status().message().find("no OpenCL"), std::string::npos);
  EXPECT_NE(found.status().message().find("no CUDA"), std::string::npos);
}

}  // namespace
}  // namespace troupe
