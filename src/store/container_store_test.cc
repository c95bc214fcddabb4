#include "store/container_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/file.h"
#include "store/container_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class ContainerStoreTest : public ::testing::Test {
 protected:
  ContainerStoreTest() { WriteTestContainer(path_); }

  Result<ContainerStore> Open(std::size_t precision = 0) const {
    return ContainerStore::Open(path_, kTestModel, kTestPanelLayout, precision);
  }

  // As the loader does it: the extent's bytes into the slot, compared, then Finish.
  Status Load(ContainerStore& store, ExpertId id, std::vector<std::byte>& slot) const {
    std::vector<Extent> extents;
    store.Locate(id, extents);
    EXPECT_EQ(extents.size(), 1u);
    slot.resize(extents[0].bytes);
    const ReadFile file = ReadFile::Open(store.files()[extents[0].file].path()).value();
    TROUPE_RETURN_IF_ERROR(file.ReadAt(extents[0].offset, slot));
    const std::span<const std::byte> part = slot;
    if (const std::unique_ptr<ArrivalCheck> check = store.BeginCheck(id)) {
      check->Add(0, part.first(50));
      check->Add(0, part.subspan(50));
      TROUPE_RETURN_IF_ERROR(check->Finish());
    }
    return store.Finish(id, {&part, 1}, slot);
  }

  void FlipByte(std::uint64_t offset) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(old ^ 1));
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.experts");
};

TEST_F(ContainerStoreTest, FindsEveryExpertOfBothPrecisionsInOneAlignedExtent) {
  for (const std::size_t precision : {0, 1}) {
    Result<ContainerStore> store = Open(precision);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    EXPECT_TRUE(store->direct());
    for (const ContainerLayer& layer : store->index().precisions[precision]) {
      for (std::uint32_t e = 0; e < 3; ++e) {
        std::vector<Extent> extents;
        store->Locate({layer.layer, e}, extents);
        EXPECT_EQ(extents[0].offset % 4096, 0u);
        EXPECT_EQ(extents[0].bytes % 4096, 0u);
        std::vector<std::byte> slot;
        ASSERT_TRUE(Load(*store, {layer.layer, e}, slot).ok());
        slot.resize(layer.expert_bytes);
        EXPECT_TRUE(slot == TestExpert(precision, layer.layer, e, layer.expert_bytes));
      }
    }
  }
}

TEST_F(ContainerStoreTest, VerifiesEveryExpertOnce) {
  ContainerStore store = Open().value();
  std::vector<std::byte> slot;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(Load(store, {1, 2}, slot).ok());
    ASSERT_TRUE(Load(store, {3, 0}, slot).ok());
  }
  EXPECT_EQ(store.verified(), 2u);
}

TEST_F(ContainerStoreTest, CountsAnExpertOnceThatThreadsVerifyAtOnce) {
  ContainerStore store = Open().value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<std::byte> slot;
      for (std::uint32_t e = 0; e < 3; ++e) EXPECT_TRUE(Load(store, {1, e}, slot).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.verified(), 3u);
}

TEST_F(ContainerStoreTest, NamesFileLayerExpertAndOffsetOfADamagedExpertEveryTime) {
  ContainerStore store = Open().value();
  std::vector<Extent> extents;
  store.Locate({3, 1}, extents);
  FlipByte(extents[0].offset + 8191);  // the last byte in use
  std::vector<std::byte> slot;
  for (int round = 0; round < 2; ++round) {
    const Status status = Load(store, {3, 1}, slot);
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("{}, byte {}: layer 3, expert 1: checksum",
                                                        path_, extents[0].offset)));
    EXPECT_THAT(status.message(), HasSubstr("`troupe pack MODEL` makes it anew"));
  }
  EXPECT_TRUE(Load(store, {3, 2}, slot).ok());
  EXPECT_EQ(store.verified(), 1u);
}

TEST_F(ContainerStoreTest, ComparesEachExpertAgainOnceItsFileWasWrittenTo) {
  ContainerStore store = Open().value();
  std::vector<std::byte> slot;
  ASSERT_TRUE(Load(store, {3, 1}, slot).ok());
  std::vector<Extent> extents;
  store.Locate({3, 1}, extents);
  FlipByte(extents[0].offset);
  EXPECT_TRUE(Load(store, {3, 1}, slot).ok()) << "it was compared once";
  EXPECT_TRUE(store.CompareEachTime());
  EXPECT_THAT(Load(store, {3, 1}, slot).message(), HasSubstr("layer 3, expert 1: checksum"));
  FlipByte(extents[0].offset);
  EXPECT_TRUE(Load(store, {3, 1}, slot).ok());
  EXPECT_EQ(store.verified(), 1u);
}

TEST_F(ContainerStoreTest, DoesNotMindDamagedPadding) {
  ContainerStore store = Open().value();
  std::vector<Extent> extents;
  store.Locate({1, 0}, extents);
  FlipByte(extents[0].offset + 10000);
  std::vector<std::byte> slot;
  EXPECT_TRUE(Load(store, {1, 0}, slot).ok());
}

TEST_F(ContainerStoreTest, RefusesAnotherModelsContainerAndSaysHowToMakeItsOwn) {
  ModelFingerprint other = kTestModel;
  ++other.words[1];
  const Status status = ContainerStore::Open(path_, other, kTestPanelLayout).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_THAT(status.message(),
              HasSubstr("from another model (fingerprint 0123456789abcdeffedcba9876543210, "
                        "0123456789abcdeffedcba9876543211 expected)"));
  EXPECT_THAT(status.message(), HasSubstr("`troupe pack MODEL` makes it anew"));
}

TEST_F(ContainerStoreTest, RefusesPanelsOfAnotherLayout) {
  const Status status = ContainerStore::Open(path_, kTestModel, 8).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("layout 7, this troupe reads layout 8"));
}

TEST_F(ContainerStoreTest, RefusesAPrecisionThatIsNotThere) {
  ContainerIndex one = TestIndex();
  one.precisions.pop_back();
  WriteTestContainer(path_, one);
  EXPECT_TRUE(Open(0).ok());
  EXPECT_THAT(Open(1).status().message(), HasSubstr("troupe pack MODEL --low TYPE"));
}

TEST_F(ContainerStoreTest, RefusesAFileThatWasCutOrIsNotThere) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4096);
  EXPECT_THAT(Open().status().message(), HasSubstr("it was cut"));
  std::filesystem::remove(path_);
  EXPECT_EQ(Open().status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
