#include "store/expert_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "base/rng.h"
#include "store/loader_for_test.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Compares with what a file should hold: parts in their order, each whole.
class TestCheck final : public ArrivalCheck {
 public:
  TestCheck(std::span<const std::byte> contents, std::vector<Extent> extents)
      : contents_(contents), extents_(std::move(extents)) {}

  void Add(std::size_t part, std::span<const std::byte> bytes) override {
    while (part_ < part && at_ == extents_[part_].bytes) ++part_, at_ = 0;
    EXPECT_EQ(part_, part);
    right_ = right_ && std::ranges::equal(
                           bytes, contents_.subspan(extents_[part].offset + at_, bytes.size()));
    at_ += bytes.size();
  }
  Status Finish() override {
    EXPECT_EQ(part_ + 1, extents_.size());
    EXPECT_EQ(at_, extents_.back().bytes);
    return right_ ? OkStatus() : DataLoss("other bytes");
  }

 private:
  std::span<const std::byte> contents_;
  std::vector<Extent> extents_;
  std::size_t part_ = 0;
  std::uint64_t at_ = 0;
  bool right_ = true;
};

// Experts of 20,000 bytes in a file: in one aligned piece each, or in three pieces at odd places.
class TestStore final : public ExpertStore {
 public:
  static constexpr std::uint64_t kBytes = 20'000, kStride = 20'480;

  TestStore(DirectFile file, bool direct) : file_(std::move(file)), direct_(direct) {}

  std::string_view name() const override { return "test"; }
  std::span<const DirectFile> files() const override { return {&file_, 1}; }
  bool direct() const override { return direct_; }
  void Locate(ExpertId id, std::vector<Extent>& extents) const override {
    const std::uint64_t begin = id.expert * kStride;
    if (direct_) {
      extents.push_back({.file = 0, .offset = begin, .bytes = kBytes});
      return;
    }
    extents.push_back({.file = 0, .offset = begin + 32, .bytes = 7'000});
    extents.push_back({.file = 0, .offset = begin + 9'000, .bytes = middle});
    extents.push_back({.file = 0, .offset = begin + 12'288, .bytes = 8'192});
  }
  std::unique_ptr<ArrivalCheck> BeginCheck(ExpertId id) override {
    if (recorded.empty()) return nullptr;
    std::vector<Extent> extents;
    Locate(id, extents);
    return std::make_unique<TestCheck>(recorded, std::move(extents));
  }
  Status Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                std::span<std::byte> slot) override {
    if (id.expert == refused) return DataLoss("{}: checksum", ToString(id));
    std::byte* to = slot.data();
    if (!direct_) {
      for (const auto part : parts) to = std::ranges::copy(part, to).out;
    }
    return OkStatus();
  }

  std::uint32_t refused = ~0u;
  std::uint64_t middle = 100;           // bytes of the part in the middle
  std::span<const std::byte> recorded;  // what the file should hold; empty: nobody knows

 private:
  DirectFile file_;
  bool direct_;
};

class ExpertLoaderTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::uint32_t kExperts = 8;

  void SetUp() override {
    contents_.resize(kExperts * TestStore::kStride);
    Rng rng(3);
    for (std::byte& b : contents_) b = static_cast<std::byte>(rng.Below(256));
    path_ = folder_.Write("experts",
                          {reinterpret_cast<const char*>(contents_.data()), contents_.size()});
    store_ = std::make_unique<TestStore>(DirectFile::Open(path_).value(), GetParam());
    Open(4, 2);
    slots_ = AlignedBuffer::Allocate(Bytes(contents_.size()), {.alignment = kPage}).value();
    std::ranges::fill(slots_.bytes(), std::byte{0});  // not what a test before has left there
  }

  void Open(std::uint32_t depth, std::uint32_t staging) {
    auto reader = std::make_unique<FakeReader>(depth);
    reader_ = reader.get();
    reader_->AddFile(store_->files()[0].fd(), contents_);
    const LoaderOptions options{.piece = 8_KiB, .prefetch_piece = 8_KiB, .staging = staging};
    loader_ = ExpertLoader::Create(*store_, std::move(reader), Bytes(TestStore::kStride), pool_,
                                   clock_, options)
                  .value();
  }

  std::span<std::byte> Slot(std::uint32_t expert) {
    return slots_.bytes().subspan(expert * TestStore::kStride, TestStore::kStride);
  }
  void Request(std::uint32_t expert, Urgency urgency = Urgency::kDemand) {
    loader_->Request({0, expert}, Slot(expert), urgency);
  }
  // What the slot should hold.
  std::vector<std::byte> Expected(std::uint32_t expert) const {
    std::vector<Extent> extents;
    store_->Locate({0, expert}, extents);
    std::vector<std::byte> bytes;
    for (const Extent& extent : extents) {
      const auto from = contents_.begin() + static_cast<std::ptrdiff_t>(extent.offset);
      bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(extent.bytes));
    }
    return bytes;
  }
  bool Holds(std::uint32_t expert) {
    const std::vector<std::byte> expected = Expected(expert);
    return std::ranges::equal(expected, Slot(expert).first(expected.size()));
  }
  // Of tasks that take so long on the caller's thread, which has several of them.
  void RunRegion(Nanos each) {
    std::atomic<int> own{0};
    pool_.Run(50, [&](std::size_t, std::size_t thread) {
      if (thread == 0) {
        clock_.Advance(each);
        own.fetch_add(1);
        return;
      }
      while (own.load() < 2) std::this_thread::yield();
    });
  }
  std::vector<LoadEnd> RunToTheEnd() { return troupe::RunToTheEnd(*loader_); }
  std::vector<std::uint32_t> OrderOf(const std::vector<LoadEnd>& ends) {
    std::vector<std::uint32_t> experts;
    for (const LoadEnd& end : ends) experts.push_back(end.id.expert);
    return experts;
  }

  TempFolder folder_;
  std::vector<std::byte> contents_;
  std::string path_;
  ThreadPool pool_{2};
  ManualClock clock_;
  std::unique_ptr<TestStore> store_;
  FakeReader* reader_ = nullptr;
  AlignedBuffer slots_;
  std::unique_ptr<ExpertLoader> loader_;
};

TEST_P(ExpertLoaderTest, TheReaderGetsItsNextPiecesWhileARegionRuns) {
  reader_->Hold(true);
  Request(1, Urgency::kPrefetch);
  Request(2, Urgency::kPrefetch);
  loader_->Poll();
  const std::size_t begun = reader_->submitted();
  ASSERT_EQ(reader_->under_way(), begun);
  reader_->Hold(false);
  RunRegion(60'000);
  EXPECT_GT(reader_->submitted(), begun);
  EXPECT_GE(loader_->stats().served_reads, begun);
  EXPECT_THAT(loader_->TakeEnded(), IsEmpty());  // what has come is finished after the region
  EXPECT_THAT(OrderOf(RunToTheEnd()), UnorderedElementsAre(1, 2));
  EXPECT_TRUE(Holds(1) && Holds(2));
}

TEST_P(ExpertLoaderTest, ServingIsNotWorthATaskOfFewMicroseconds) {
  reader_->Hold(true);
  Request(1, Urgency::kPrefetch);
  Request(2, Urgency::kPrefetch);
  loader_->Poll();
  reader_->Hold(false);
  clock_.Advance(60'000);
  RunRegion(0);  // at one time: one look
  const std::uint64_t served = loader_->stats().served_reads;
  EXPECT_GT(served, 0u);
  RunRegion(0);
  EXPECT_EQ(loader_->stats().served_reads, served);
}

INSTANTIATE_TEST_SUITE_P(Stores, ExpertLoaderTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Direct" : "InParts"; });

TEST_P(ExpertLoaderTest, EveryExpertArrivesWholeInItsSlot) {
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  EXPECT_THAT(RunToTheEnd(), SizeIs(kExperts));
  for (std::uint32_t e = 0; e < kExperts; ++e) EXPECT_TRUE(Holds(e)) << "expert " << e;
  EXPECT_EQ(loader_->stats().loads, kExperts);
}

TEST_P(ExpertLoaderTest, AnswersInAnyOrderMakeTheSameBytes) {
  reader_->Reverse(true);
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  RunToTheEnd();
  for (std::uint32_t e = 0; e < kExperts; ++e) EXPECT_TRUE(Holds(e)) << "expert " << e;
}

TEST_P(ExpertLoaderTest, ReadsAreAlignedAndNoLongerThanAPiece) {
  reader_->SetScript([](const ReadRequest& request) {
    EXPECT_EQ(request.offset % kDirectAlignment.count(), 0u);
    EXPECT_EQ(request.target.size() % kDirectAlignment.count(), 0u);
    EXPECT_LE(request.target.size(), (8_KiB).count());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(request.target.data()) % kDirectAlignment.count(),
              0u);
    return FakeReader::Fault::kNone;
  });
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  RunToTheEnd();
}

TEST_P(ExpertLoaderTest, APartOfNoBytesIsNotReadAndIsThereEmpty) {
  store_->middle = 0;
  reader_->SetScript([direct = GetParam()](const ReadRequest& request) {
    // In one part that page is read with the others.
    if (!direct) {
      EXPECT_NE(request.offset % TestStore::kStride, 8'192u);
    }
    return FakeReader::Fault::kNone;
  });
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  RunToTheEnd();
  for (std::uint32_t e = 0; e < kExperts; ++e) EXPECT_TRUE(Holds(e)) << "expert " << e;
}

TEST_P(ExpertLoaderTest, DemandGoesBeforePrefetchThatHasNotStarted) {
  for (const std::uint32_t e : {0u, 1u, 2u}) Request(e, Urgency::kPrefetch);
  Request(7);
  EXPECT_THAT(OrderOf(RunToTheEnd()), ElementsAre(7, 0, 1, 2));
}

TEST_P(ExpertLoaderTest, APromotedPrefetchOvertakesTheOthers) {
  for (const std::uint32_t e : {0u, 1u, 2u}) Request(e, Urgency::kPrefetch);
  loader_->Promote({0, 2});
  loader_->Promote({0, 2});  // urgent already
  EXPECT_THAT(OrderOf(RunToTheEnd()), ElementsAre(2, 0, 1));
  EXPECT_EQ(loader_->stats().promoted, 1u);
}

TEST_P(ExpertLoaderTest, APrefetchCanBeCalledOffUntilAllOfItIsUnderWay) {
  reader_->Hold(true);
  for (const std::uint32_t e : {0u, 1u, 2u, 3u}) Request(e, Urgency::kPrefetch);
  Request(4);
  loader_->Poll();  // four reads under way: the demand's three, and the first prefetch's first
  EXPECT_EQ(loader_->Cancel({0, 4}), CallOff::kTooLate);
  EXPECT_EQ(loader_->Cancel({0, 2}), CallOff::kGone);
  EXPECT_EQ(loader_->Cancel({0, 2}), CallOff::kTooLate);
  EXPECT_EQ(loader_->Cancel({0, 0}), CallOff::kEnding);
  reader_->Hold(false);
  std::vector<LoadEnd> ends = RunToTheEnd();
  const auto first = std::ranges::find(ends, ExpertId{0, 0}, &LoadEnd::id);
  ASSERT_NE(first, ends.end());
  EXPECT_EQ(first->status.code(), Code::kCancelled);
  ends.erase(first);
  EXPECT_THAT(OrderOf(ends), ElementsAre(4, 1, 3));
  EXPECT_EQ(loader_->stats().cancelled, 2u);
  EXPECT_EQ(loader_->stats().loads, 3u);
  EXPECT_EQ(loader_->stats().failures, 0u);
}

TEST_P(ExpertLoaderTest, WhatIsForeseenIsReadBehindDemandAndBeforeGuesses) {
  Request(0, Urgency::kPrefetch);
  for (const std::uint32_t e : {1u, 2u, 3u}) Request(e, Urgency::kForeseen);
  Request(7);
  loader_->Promote({0, 2});  // asked for before 7 was
  EXPECT_THAT(OrderOf(RunToTheEnd()), ElementsAre(2, 7, 1, 3, 0));
}

TEST_P(ExpertLoaderTest, WhatIsForeseenFillsTheQueueAndCanBeCalledOff) {
  reader_->Hold(true);
  for (const std::uint32_t e : {0u, 1u, 2u}) Request(e, Urgency::kForeseen);
  loader_->Poll();
  EXPECT_EQ(reader_->under_way(), reader_->depth());
  EXPECT_EQ(loader_->Cancel({0, 2}), CallOff::kGone);
  EXPECT_EQ(loader_->Cancel({0, 1}), CallOff::kEnding);
  reader_->Hold(false);
  const std::vector<LoadEnd> ends = RunToTheEnd();
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_TRUE(ends[0].status.ok());
  EXPECT_EQ(ends[1].status.code(), Code::kCancelled);
  EXPECT_EQ(loader_->stats().loads, 1u);
}

// One that has begun to read into the only staging buffer must not wait for demand that needs it.
TEST_P(ExpertLoaderTest, DemandThatFindsNoStagingWaitsForWhatHasIt) {
  Open(2, 1);
  reader_->Hold(true);
  for (const std::uint32_t e : {0u, 1u}) Request(e, Urgency::kForeseen);
  loader_->Poll();  // two of the first one's three reads
  Request(7);
  reader_->Hold(false);
  EXPECT_THAT(RunToTheEnd(), SizeIs(3));
}

TEST_P(ExpertLoaderTest, ALoadThatHasEndedMayBePromotedBeforeItIsCollected) {
  Request(0, Urgency::kPrefetch);
  while (loader_->under_way() > 0) loader_->Poll();
  loader_->Promote({0, 0});
  EXPECT_EQ(loader_->stats().promoted, 0u);
  EXPECT_THAT(OrderOf(loader_->TakeEnded()), ElementsAre(0));
}

TEST_P(ExpertLoaderTest, APromotedLoadThatFindsNoStagingWaitsForTheOneBehindIt) {
  Open(2, 1);
  reader_->Hold(true);
  Request(0, Urgency::kPrefetch);
  Request(1);
  loader_->Poll();  // two of the second one's three reads
  loader_->Promote({0, 0});
  reader_->Hold(false);
  EXPECT_THAT(RunToTheEnd(), SizeIs(2));
}

TEST_P(ExpertLoaderTest, PrefetchesHoldNoMoreReadsThanTheyMay) {
  reader_->Hold(true);
  for (const std::uint32_t e : {0u, 1u, 2u}) Request(e, Urgency::kPrefetch);
  loader_->Poll();
  EXPECT_EQ(reader_->under_way(), LoaderOptions().prefetch_reads);
  loader_->Promote({0, 0});
  loader_->Poll();
  EXPECT_EQ(reader_->under_way(), 3u);  // the rest of the first, now demand
  reader_->Hold(false);
  EXPECT_THAT(RunToTheEnd(), SizeIs(3));
}

TEST_P(ExpertLoaderTest, AFailedReadIsTriedOnceMore) {
  for (const auto fault : {FakeReader::Fault::kError, FakeReader::Fault::kShort}) {
    int faults = 0;
    const std::uint64_t before = loader_->stats().retries;
    reader_->SetScript(
        [&](const ReadRequest&) { return faults++ == 2 ? fault : FakeReader::Fault::kNone; });
    Request(3);
    const auto ends = RunToTheEnd();
    ASSERT_THAT(ends, SizeIs(1));
    EXPECT_TRUE(ends[0].status.ok()) << ends[0].status.ToString();
    EXPECT_TRUE(Holds(3));
    EXPECT_EQ(loader_->stats().retries, before + 1);
  }
}

TEST_P(ExpertLoaderTest, AReadThatFailsTwiceIsTheErrorOfItsLoadAlone) {
  const std::uint64_t bad = 2 * TestStore::kStride;
  reader_->SetScript([&](const ReadRequest& request) {
    const bool hit = request.offset >= bad && request.offset < bad + TestStore::kStride;
    return hit ? FakeReader::Fault::kError : FakeReader::Fault::kNone;
  });
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  for (const LoadEnd& end : RunToTheEnd()) {
    EXPECT_EQ(end.status.ok(), end.id.expert != 2);
    if (end.status.ok()) continue;
    EXPECT_THAT(end.status.message(), HasSubstr(path_ + ": layer 0, expert 2: "));
    EXPECT_THAT(end.status.message(), HasSubstr("cannot be read"));
  }
  EXPECT_EQ(loader_->stats().failures, 1u);
  for (std::uint32_t e = 0; e < kExperts; ++e) EXPECT_EQ(Holds(e), e != 2);
}

TEST_P(ExpertLoaderTest, AFileThatEndsTooEarlySaysWhatWasFoundAndExpected) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kEnd; });
  Request(1);
  const auto ends = RunToTheEnd();
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(ends[0].status.code(), Code::kDataLoss);
  EXPECT_THAT(ends[0].status.message(), HasSubstr("0 were read, expected"));
}

TEST_P(ExpertLoaderTest, AfterADiskIsGoneEveryLoadFailsAndTheLoaderStaysUsable) {
  reader_->SetScript([](const ReadRequest&) { return FakeReader::Fault::kGone; });
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  for (const LoadEnd& end : RunToTheEnd()) EXPECT_FALSE(end.status.ok());
  EXPECT_EQ(loader_->under_way(), 0u);
  EXPECT_EQ(loader_->stats().failures, kExperts);
  Request(0);
  EXPECT_THAT(RunToTheEnd(), SizeIs(1));
}

TEST_P(ExpertLoaderTest, AnExpertThatTheStoreRefusesIsNotHandedOut) {
  store_->refused = 5;
  for (const std::uint32_t e : {4u, 5u, 6u}) Request(e);
  for (const LoadEnd& end : RunToTheEnd()) EXPECT_EQ(end.status.ok(), end.id.expert != 5);
}

TEST_P(ExpertLoaderTest, AFileWrittenToWhileInUseIsNoticed) {
  Request(0);
  EXPECT_TRUE(RunToTheEnd()[0].status.ok());
  std::ofstream(path_, std::ios::app) << "more";
  Request(1);
  const Status status = RunToTheEnd()[0].status;
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(path_));
}

// Pieces are of 8 KiB: all but the last one's bytes are gone through while that is read.
TEST_P(ExpertLoaderTest, WhatHasComeIsComparedWhileTheRestIsRead) {
  store_->recorded = contents_;
  reader_->Hold(true);  // one answer a wait
  Request(2);
  const auto ends = RunToTheEnd();
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_TRUE(ends[0].status.ok()) << ends[0].status.ToString();
  EXPECT_EQ(loader_->stats().compared_bytes, Expected(2).size());
  EXPECT_EQ(loader_->stats().compared_early, GetParam() ? 2 * 8192 : 7'000 + 100);
  EXPECT_TRUE(Holds(2));
}

TEST_P(ExpertLoaderTest, WhatComesBeforeAnEarlierPieceIsComparedAtTheEnd) {
  store_->recorded = contents_;
  reader_->Hold(true);
  reader_->Reverse(true);
  Request(2);
  EXPECT_TRUE(RunToTheEnd()[0].status.ok());
  EXPECT_EQ(loader_->stats().compared_bytes, Expected(2).size());
  EXPECT_EQ(loader_->stats().compared_early, 0u);
}

// What a failed read has left in memory is nobody's: the checksum takes what came in its place.
TEST_P(ExpertLoaderTest, AReadThatIsTriedAgainIsComparedOnce) {
  store_->recorded = contents_;
  reader_->Hold(true);
  int reads = 0;
  reader_->SetScript([&](const ReadRequest&) {
    return reads++ == 0 ? FakeReader::Fault::kShort : FakeReader::Fault::kNone;
  });
  Request(3);
  const auto ends = RunToTheEnd();
  EXPECT_TRUE(ends[0].status.ok()) << ends[0].status.ToString();
  EXPECT_EQ(loader_->stats().retries, 1u);
  EXPECT_EQ(loader_->stats().compared_bytes, Expected(3).size());
  EXPECT_TRUE(Holds(3));
}

TEST_P(ExpertLoaderTest, OtherBytesAreFoundWhereverTheyCome) {
  store_->recorded = contents_;
  for (const bool held : {false, true}) {
    for (const int bad : {0, 2}) {  // whose middle is an expert's, whatever its parts
      reader_->Hold(held);
      int reads = 0;
      reader_->SetScript([&](const ReadRequest&) {
        return reads++ == bad ? FakeReader::Fault::kCorrupt : FakeReader::Fault::kNone;
      });
      Request(4);
      const auto ends = RunToTheEnd();
      ASSERT_THAT(ends, SizeIs(1));
      EXPECT_EQ(ends[0].status.code(), Code::kDataLoss) << held << bad;
    }
  }
  EXPECT_EQ(loader_->stats().failures, 4u);
}

TEST_P(ExpertLoaderTest, WhatNobodyRecordedIsNotCompared) {
  reader_->Hold(true);
  Request(2);
  EXPECT_TRUE(RunToTheEnd()[0].status.ok());
  EXPECT_EQ(loader_->stats().compared_bytes, 0u);
}

TEST_P(ExpertLoaderTest, PollNeverWaits) {
  reader_->Hold(true);
  Request(0);
  for (int i = 0; i < 10; ++i) loader_->Poll();
  EXPECT_THAT(loader_->TakeEnded(), SizeIs(0));
  EXPECT_EQ(loader_->under_way(), 1u);
}

TEST_P(ExpertLoaderTest, CanBeDestroyedWhileReadsAreUnderWay) {
  reader_->Hold(true);
  for (std::uint32_t e = 0; e < kExperts; ++e) Request(e);
  loader_->Poll();
  loader_.reset();
}

}  // namespace
}  // namespace troupe
