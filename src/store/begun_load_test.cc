// When the first bytes of a load that has not ended may be computed with: only such as will end
// whole and compared, or with an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
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

constexpr ExpertId kBegun{1, 1};  // of container_for_test.h
constexpr Bytes kBegunSlot(12288), kFirstPart(6000);

// Experts in pieces of 4 KiB, of which one comes with each wait.
class BegunLoad : public testing::Test {
 protected:
  BegunLoad() {
    WriteTestContainer(path_);
    const ReadFile file = ReadFile::Open(path_).value();
    contents_.resize(file.size());
    TROUPE_CHECK(file.ReadAt(0, contents_).ok());
    store_ = std::make_unique<ContainerStore>(
        ContainerStore::Open(path_, kTestModel, kTestPanelLayout).value());
    auto reader = std::make_unique<FakeReader>(4);
    reader_ = reader.get();
    reader_->AddFile(store_->files()[0].fd(), contents_);
    reader_->Hold(true);
    loader_ = ExpertLoader::Create(*store_, std::move(reader), kBegunSlot, pool_, clock_,
                                   {.piece = 4_KiB, .prefetch_piece = 4_KiB})
                  .value();
    slot_ = AlignedBuffer::Allocate(kBegunSlot, {.alignment = kPage}).value();
  }

  void Request(Urgency urgency) { loader_->Request(kBegun, slot_.bytes(), urgency); }
  bool HasBegun() const { return loader_->HasBegun(kBegun, kFirstPart); }
  bool HoldsFirstPart() {
    const std::vector<std::byte> whole = TestExpert(0, kBegun.layer, kBegun.expert, 10000);
    const std::size_t bytes = kFirstPart.count();
    return std::ranges::equal(std::span(whole).first(bytes), slot_.bytes().first(bytes));
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.experts");
  std::vector<std::byte> contents_;
  ThreadPool pool_{2};
  ManualClock clock_;
  std::unique_ptr<ContainerStore> store_;
  FakeReader* reader_ = nullptr;
  AlignedBuffer slot_;
  std::unique_ptr<ExpertLoader> loader_;
};

TEST_F(BegunLoad, ADemandHasBegunOnceAllItsFirstBytesHaveCome) {
  EXPECT_FALSE(HasBegun());
  Request(Urgency::kDemand);
  EXPECT_FALSE(HasBegun());
  loader_->WaitForPiece();
  EXPECT_FALSE(HasBegun());  // 4,096 bytes of 6,000
  loader_->WaitForPiece();
  EXPECT_TRUE(HasBegun());
  EXPECT_TRUE(HoldsFirstPart());
  EXPECT_TRUE(RunToTheEnd(*loader_)[0].status.ok());
  EXPECT_FALSE(HasBegun());  // it has ended
}

TEST_F(BegunLoad, WhatMayBeCalledOffHasNotAndIfItWasNeverHas) {
  Request(Urgency::kPrefetch);
  loader_->WaitForPiece();
  loader_->WaitForPiece();
  EXPECT_FALSE(HasBegun());
  loader_->Promote(kBegun);
  EXPECT_TRUE(HasBegun());
  EXPECT_EQ(loader_->Cancel(kBegun), CallOff::kTooLate);
}

TEST_F(BegunLoad, OneThatWasCalledOffAndIsWantedAgainHasNot) {
  reader_ = nullptr;
  loader_.reset();
  auto reader = std::make_unique<FakeReader>(2);  // so that the last piece is not under way
  reader->AddFile(store_->files()[0].fd(), contents_);
  reader->Hold(true);
  loader_ = ExpertLoader::Create(*store_, std::move(reader), kBegunSlot, pool_, clock_,
                                 {.piece = 4_KiB, .prefetch_piece = 4_KiB})
                .value();
  Request(Urgency::kPrefetch);
  loader_->Poll();
  ASSERT_EQ(loader_->Cancel(kBegun), CallOff::kEnding);
  loader_->Promote(kBegun);
  while (loader_->under_way() > 0) {
    loader_->WaitForPiece();
    EXPECT_FALSE(HasBegun());
  }
  EXPECT_EQ(loader_->TakeEnded()[0].status.code(), Code::kCancelled);
}

TEST_F(BegunLoad, OneWithAByteThatIsNotTheFilesEndsWithAnError) {
  reader_->SetScript([first = true](const ReadRequest&) mutable {
    return std::exchange(first, false) ? FakeReader::Fault::kCorrupt : FakeReader::Fault::kNone;
  });
  Request(Urgency::kDemand);
  loader_->WaitForPiece();
  loader_->WaitForPiece();
  EXPECT_TRUE(HasBegun());  // nobody knows yet
  EXPECT_FALSE(HoldsFirstPart());
  EXPECT_EQ(RunToTheEnd(*loader_)[0].status.code(), Code::kDataLoss);
}

TEST_F(BegunLoad, AReadThatHasToBeTriedAgainHasNotCome) {
  reader_->SetScript([reads = 0](const ReadRequest&) mutable {
    return reads++ == 1 ? FakeReader::Fault::kShort : FakeReader::Fault::kNone;
  });
  Request(Urgency::kDemand);
  loader_->WaitForPiece();
  loader_->WaitForPiece();
  EXPECT_FALSE(HasBegun());
  EXPECT_TRUE(RunToTheEnd(*loader_)[0].status.ok());
  EXPECT_TRUE(HoldsFirstPart());
  EXPECT_EQ(loader_->stats().retries, 1u);
}

}  // namespace
}  // namespace troupe
