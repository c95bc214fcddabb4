// A read that says it went well and brings other bytes, on the way from a container to a slot: the
// checksum finds it where the expert is loaded for the first time, and only that load fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "io/aligned_buffer.h"
#include "io/file.h"
#include "store/container_for_test.h"
#include "store/container_store.h"
#include "store/loader_for_test.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kLayer = 1, kExperts = 3;  // of container_for_test.h
constexpr std::uint64_t kExpertBytes = 10000, kSlotBytes = 12288;

class CorruptedReadTest : public ::testing::Test {
 protected:
  CorruptedReadTest() {
    WriteTestContainer(path_);
    const ReadFile file = ReadFile::Open(path_).value();
    contents_.resize(file.size());
    TROUPE_CHECK(file.ReadAt(0, contents_).ok());
    store_ = std::make_unique<ContainerStore>(
        ContainerStore::Open(path_, kTestModel, kTestPanelLayout).value());
    auto reader = std::make_unique<FakeReader>(4);
    reader_ = reader.get();
    reader_->AddFile(store_->files()[0].fd(), contents_);
    loader_ = ExpertLoader::Create(*store_, std::move(reader), Bytes(kSlotBytes), pool_, clock_, {})
                  .value();
    slots_ = AlignedBuffer::Allocate(Bytes(kExperts * kSlotBytes), {.alignment = kPage}).value();
    std::ranges::fill(slots_.bytes(), std::byte{0});
  }

  // The first `times` reads of the expert bring a byte that is not the file's.
  void Corrupt(std::uint32_t expert, int times) {
    std::vector<Extent> extents;
    store_->Locate({kLayer, expert}, extents);
    reader_->SetScript([at = extents[0].offset, times](const ReadRequest& request) mutable {
      const bool hit = request.offset == at && times-- > 0;
      return hit ? FakeReader::Fault::kCorrupt : FakeReader::Fault::kNone;
    });
  }

  std::span<std::byte> Slot(std::uint32_t expert) {
    return slots_.bytes().subspan(expert * kSlotBytes, kSlotBytes);
  }
  bool Holds(std::uint32_t expert) {
    return std::ranges::equal(TestExpert(0, kLayer, expert, kExpertBytes),
                              Slot(expert).first(kExpertBytes));
  }
  // All experts at once; how each one's load ended.
  std::vector<Status> LoadAll() {
    for (std::uint32_t e = 0; e < kExperts; ++e) {
      loader_->Request({kLayer, e}, Slot(e), Urgency::kDemand);
    }
    std::vector<Status> status(kExperts);
    for (LoadEnd& end : RunToTheEnd(*loader_)) status[end.id.expert] = std::move(end.status);
    return status;
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.experts");
  std::vector<std::byte> contents_;
  ThreadPool pool_{2};
  ManualClock clock_;
  std::unique_ptr<ContainerStore> store_;
  FakeReader* reader_ = nullptr;
  AlignedBuffer slots_;
  std::unique_ptr<ExpertLoader> loader_;
};

TEST_F(CorruptedReadTest, IsTheErrorOfItsLoadAloneAndTheNextLoadIsWell) {
  Corrupt(1, 1);
  const std::vector<Status> first = LoadAll();
  EXPECT_EQ(first[1].code(), Code::kDataLoss);
  EXPECT_THAT(first[1].message(), HasSubstr(path_));
  EXPECT_THAT(first[1].message(), HasSubstr("layer 1, expert 1: checksum"));
  for (const std::uint32_t e : {0u, 2u}) {
    EXPECT_TRUE(first[e].ok()) << first[e].ToString();
    EXPECT_TRUE(Holds(e)) << e;
  }
  EXPECT_FALSE(Holds(1));
  EXPECT_EQ(loader_->stats().failures, 1u);
  EXPECT_EQ(store_->verified(), 2u);

  for (const Status& status : LoadAll()) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(Holds(1));
  EXPECT_EQ(loader_->stats().failures, 1u);
  EXPECT_EQ(store_->verified(), 3u);
}

TEST_F(CorruptedReadTest, IsFoundInExpertsThatWereRightBeforeTheirFileWasWrittenTo) {
  for (const Status& status : LoadAll()) ASSERT_TRUE(status.ok()) << status.ToString();
  Corrupt(1, 1);
  EXPECT_TRUE(LoadAll()[1].ok()) << "it was compared once";
  const std::uint64_t compared = loader_->stats().compared_bytes;
  EXPECT_EQ(compared, kExperts * kSlotBytes);  // with what lies behind them
  std::ofstream(path_, std::ios::app) << "more";
  Corrupt(1, 1);
  EXPECT_EQ(LoadAll()[1].code(), Code::kDataLoss);
  for (const Status& status : LoadAll()) EXPECT_TRUE(status.ok()) << status.ToString();
}

// The bytes came, so they are not asked for again within a load: that is for reads that fail.
TEST_F(CorruptedReadTest, FailsEveryLoadUntilTheBytesAreRight) {
  Corrupt(2, 2);
  for (int round = 0; round < 2; ++round) {
    const std::vector<Status> status = LoadAll();
    EXPECT_EQ(status[2].code(), Code::kDataLoss) << round;
    EXPECT_TRUE(status[0].ok() && status[1].ok()) << round;
  }
  EXPECT_EQ(loader_->stats().failures, 2u);
  EXPECT_EQ(loader_->stats().retries, 0u);
  EXPECT_TRUE(LoadAll()[2].ok());
  EXPECT_TRUE(Holds(2));
}

}  // namespace
}  // namespace troupe
