// What every reader promises, held against each of them.
#include "io/async_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "base/fd.h"
#include "base/rng.h"
#include "io/aligned_buffer.h"
#include "io/direct_file.h"
#include "io/thread_reader.h"
#include "io/throttled_reader.h"
#include "io/uring_reader.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kDepth = 16;
constexpr std::byte kUntouched{0xEE};
const MonotonicClock kClock;

struct Kind {
  std::string name;
  std::function<Result<std::unique_ptr<AsyncReader>>()> make;
};

Kind Threads() {
  return {"threads", [] { return MakeThreadReader(kDepth, 4); }};
}

Kind Uring() {
  return {"uring", [] { return MakeUringReader(kDepth); }};
}

// Fast enough not to be waited for, slow enough that its answers are not there at once.
Kind Throttled() {
  return {"throttled", []() -> Result<std::unique_ptr<AsyncReader>> {
            TROUPE_ASSIGN_OR_RETURN(auto threads, MakeThreadReader(kDepth, 4));
            const LinkSpeed link = {.bytes_per_second = 4e9, .latency_seconds = 50e-6};
            return MakeThrottledReader(std::move(threads), link, kClock);
          }};
}

Kind Fake() {
  return {"fake", []() -> Result<std::unique_ptr<AsyncReader>> {
            return std::unique_ptr<AsyncReader>(std::make_unique<FakeReader>(kDepth));
          }};
}

class AsyncReaders : public testing::TestWithParam<Kind> {
 protected:
  AsyncReaders() : contents_(1'000'003) {
    Rng rng(TestSeed());
    for (std::byte& b : contents_) b = static_cast<std::byte>(rng.Next());
    path_ = folder_.Write("experts",
                          {reinterpret_cast<const char*>(contents_.data()), contents_.size()});
    fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    TROUPE_CHECK(fd_.valid());
  }

  void SetUp() override {
    auto reader = GetParam().make();
    if (reader.status().code() == Code::kUnavailable) GTEST_SKIP() << reader.status().message();
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    reader_ = std::move(*reader);
    Serve(fd_.get());
  }

  // A fake has its files from us.
  void Serve(int fd) {
    if (auto* fake = dynamic_cast<FakeReader*>(reader_.get())) fake->AddFile(fd, contents_);
  }

  std::vector<ReadAnswer> CollectAll() {
    std::vector<ReadAnswer> answers;
    while (reader_->under_way() > 0) reader_->Collect(answers, std::nullopt);
    std::ranges::sort(answers, {}, &ReadAnswer::tag);
    return answers;
  }

  ReadAnswer ReadOne(const ReadRequest& request) {
    reader_->Submit({&request, 1});
    const auto answers = CollectAll();
    TROUPE_CHECK(answers.size() == 1);
    return answers[0];
  }

  bool IsRight(std::uint64_t offset, std::span<const std::byte> bytes) const {
    return offset <= contents_.size() && bytes.size() <= contents_.size() - offset &&
           std::memcmp(bytes.data(), contents_.data() + offset, bytes.size()) == 0;
  }

  static bool IsUntouched(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == kUntouched; });
  }

  // Many rounds of random reads, as many at once as the reader takes, into slices of `memory`.
  void ReadAtRandom(int fd, std::span<std::byte> memory, std::uint64_t alignment) {
    Rng rng(TestSeed());
    const std::size_t slice = memory.size() / kDepth;
    for (int round = 0; round < 20; ++round) {
      std::ranges::fill(memory, kUntouched);
      std::vector<ReadRequest> requests;
      for (std::uint64_t tag = 0; tag < kDepth; ++tag) {
        const std::size_t size = (1 + rng.Below(slice / alignment)) * alignment;
        requests.push_back({
            .fd = fd,
            .offset = rng.Below((contents_.size() - size) / alignment) * alignment,
            .target = memory.subspan(tag * slice, size),
            .tag = tag,
        });
      }
      reader_->Submit(requests);
      ASSERT_EQ(reader_->under_way(), kDepth);
      const auto answers = CollectAll();
      ASSERT_EQ(answers.size(), kDepth);
      for (const ReadAnswer& answer : answers) {
        const ReadRequest& request = requests[answer.tag];
        ASSERT_TRUE(answer.status.ok()) << answer.status.ToString();
        ASSERT_EQ(answer.bytes, request.target.size());
        ASSERT_TRUE(IsRight(request.offset, request.target)) << "at byte " << request.offset;
        const auto behind = memory.subspan((answer.tag * slice) + request.target.size(),
                                           slice - request.target.size());
        ASSERT_TRUE(IsUntouched(behind));
      }
    }
  }

  TempFolder folder_;
  std::vector<std::byte> contents_;
  std::string path_;
  UniqueFd fd_;
  std::unique_ptr<AsyncReader> reader_;
};

TEST_P(AsyncReaders, GiveAllBytesRightAtOddOffsetsWithTheQueueFull) {
  std::vector<std::byte> memory(kDepth * 30'011);
  ReadAtRandom(fd_.get(), memory, 1);
}

TEST_P(AsyncReaders, GiveAllBytesRightPastThePageCache) {
  const DirectFile file = DirectFile::Open(path_).value();
  Serve(file.fd());
  auto memory =
      AlignedBuffer::Allocate(kDirectAlignment * 8 * kDepth, {.alignment = kDirectAlignment})
          .value();
  ReadAtRandom(file.fd(), memory.bytes(), kDirectAlignment.count());
}

TEST_P(AsyncReaders, GiveTheSameBytesIntoRegisteredMemory) {
  const DirectFile file = DirectFile::Open(path_).value();
  Serve(file.fd());
  auto memory =
      AlignedBuffer::Allocate(kDirectAlignment * 8 * kDepth, {.alignment = kDirectAlignment})
          .value();
  reader_->RegisterMemory(memory.bytes());
  ReadAtRandom(file.fd(), memory.bytes(), kDirectAlignment.count());
  ReadAtRandom(fd_.get(), memory.bytes(), 1);
  std::vector<std::byte> elsewhere(kDepth * 1000);
  ReadAtRandom(fd_.get(), elsewhere, 1);
  reader_.reset();  // its memory must outlive it
}

TEST_P(AsyncReaders, ReadPlainlyWhereMemoryCannotBeRegistered) {
  constexpr std::size_t kSize = 1 << 20;
  void* forbidden = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  EXPECT_FALSE(reader_->RegisterMemory({static_cast<std::byte*>(forbidden), kSize}));
  ASSERT_EQ(::mprotect(forbidden, kSize, PROT_READ | PROT_WRITE), 0);
  ReadAtRandom(fd_.get(), {static_cast<std::byte*>(forbidden), kSize / 4}, 1);
  ::munmap(forbidden, kSize);
}

TEST_P(AsyncReaders, ReturnEachTagOnceThoughTheQueueNeverRunsEmpty) {
  std::vector<std::byte> memory(kDepth * 512);
  std::multiset<std::uint64_t> tags;
  std::vector<ReadAnswer> answers;
  std::uint64_t next = 0;
  const auto submit = [&](std::uint64_t place) {
    const ReadRequest request = {.fd = fd_.get(),
                                 .offset = next * 257,
                                 .target = std::span(memory).subspan(place * 512, 512),
                                 .tag = next * kDepth + place};
    reader_->Submit({&request, 1});
    ++next;
  };
  for (std::uint64_t place = 0; place < kDepth; ++place) submit(place);
  while (reader_->under_way() > 0) {
    answers.clear();
    reader_->Collect(answers, std::nullopt);
    ASSERT_FALSE(answers.empty());
    for (const ReadAnswer& answer : answers) {
      tags.insert(answer.tag / kDepth);
      const std::uint64_t place = answer.tag % kDepth;
      ASSERT_TRUE(IsRight(answer.tag / kDepth * 257, std::span(memory).subspan(place * 512, 512)));
      if (next < 1000) submit(place);
    }
  }
  std::vector<std::uint64_t> each_once(1000);
  std::iota(each_once.begin(), each_once.end(), 0);
  EXPECT_THAT(tags, testing::ElementsAreArray(each_once));
}

TEST_P(AsyncReaders, AnswerEqualTagsEachToItsOwnRead) {
  std::vector<std::byte> memory(300);
  const std::span<std::byte> all(memory);
  const ReadRequest requests[] = {
      {.fd = fd_.get(), .offset = 0, .target = all.first(100), .tag = 7},
      {.fd = fd_.get(), .offset = contents_.size() - 10, .target = all.last(200), .tag = 7}};
  reader_->Submit(requests);
  auto answers = CollectAll();
  std::ranges::sort(answers, {}, &ReadAnswer::bytes);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].bytes, 10u);
  EXPECT_EQ(answers[1].bytes, 100u);
}

TEST_P(AsyncReaders, AnswerReadsPastTheEndWithWhatThereIs) {
  std::vector<std::byte> target(100, kUntouched);
  const std::uint64_t end = contents_.size();
  const ReadAnswer across = ReadOne({.fd = fd_.get(), .offset = end - 30, .target = target});
  EXPECT_TRUE(across.status.ok());
  EXPECT_EQ(across.bytes, 30u);
  EXPECT_TRUE(IsRight(end - 30, std::span(target).first(30)));
  EXPECT_THAT(std::span(target).subspan(30), testing::Each(kUntouched));
  const ReadAnswer beyond = ReadOne({.fd = fd_.get(), .offset = end + 4096, .target = target});
  EXPECT_TRUE(beyond.status.ok());
  EXPECT_EQ(beyond.bytes, 0u);
}

TEST_P(AsyncReaders, AnswerAnEmptyReadWithNothing) {
  const ReadAnswer answer = ReadOne({.fd = fd_.get(), .offset = 5, .target = {}, .tag = 3});
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.bytes, 0u);
  EXPECT_EQ(answer.tag, 3u);
}

TEST_P(AsyncReaders, AnswerAClosedDescriptorAndAnImpossibleOffsetWithAnError) {
  std::vector<std::byte> target(100, kUntouched);
  const int closed = ::dup(fd_.get());
  ::close(closed);
  const ReadAnswer answer = ReadOne({.fd = closed, .offset = 0, .target = target, .tag = 9});
  EXPECT_EQ(answer.tag, 9u);
  EXPECT_THAT(answer.status.message(), testing::HasSubstr("Bad file descriptor"));
  for (const std::uint64_t offset : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_FALSE(ReadOne({.fd = fd_.get(), .offset = offset, .target = target}).status.ok());
  }
  EXPECT_THAT(target, testing::Each(kUntouched));
}

TEST_P(AsyncReaders, AnErrorLeavesTheOthersAlone) {
  std::vector<std::byte> memory(kDepth * 100);
  std::vector<ReadRequest> requests;
  for (std::uint64_t tag = 0; tag < kDepth; ++tag) {
    requests.push_back({.fd = tag % 3 == 0 ? -1 : fd_.get(),
                        .offset = tag * 1000,
                        .target = std::span(memory).subspan(tag * 100, 100),
                        .tag = tag});
  }
  reader_->Submit(requests);
  const auto answers = CollectAll();
  ASSERT_EQ(answers.size(), kDepth);
  for (const ReadAnswer& answer : answers) {
    EXPECT_EQ(answer.status.ok(), answer.tag % 3 != 0) << answer.tag;
    if (answer.status.ok()) {
      EXPECT_TRUE(IsRight(answer.tag * 1000, requests[answer.tag].target));
    }
  }
}

TEST_P(AsyncReaders, CollectReturnsAtOnceIfNothingIsUnderWay) {
  std::vector<ReadAnswer> answers;
  reader_->Collect(answers, std::nullopt);
  reader_->Collect(answers, 0);
  reader_->Collect(answers, std::numeric_limits<Nanos>::max());
  EXPECT_TRUE(answers.empty());
}

TEST_P(AsyncReaders, CollectAppendsAndTakesAnyWait) {
  std::vector<std::byte> target(100);
  std::vector<ReadAnswer> answers(1);
  for (const Nanos wait :
       {Nanos{0}, Nanos{1}, Nanos{1'000'000}, Nanos{-5}, std::numeric_limits<Nanos>::max()}) {
    const ReadRequest request = {.fd = fd_.get(), .offset = 1, .target = target, .tag = 4};
    reader_->Submit({&request, 1});
    const std::size_t before = answers.size();
    while (answers.size() == before) reader_->Collect(answers, wait);
    ASSERT_EQ(answers.size(), before + 1);
    EXPECT_EQ(answers.back().tag, 4u);
    EXPECT_EQ(reader_->under_way(), 0u);
  }
}

TEST_P(AsyncReaders, TakeNoMoreThanTheirDepth) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // readers have threads
  EXPECT_EQ(reader_->depth(), kDepth);
  std::vector<std::byte> target(8);
  const std::vector<ReadRequest> requests(kDepth + 1, {.fd = fd_.get(), .target = target});
  EXPECT_DEATH(reader_->Submit(requests), "broken invariant");
}

// Whatever was under way is whole or untouched once the reader is gone, and stays so.
TEST_P(AsyncReaders, MayBeDestroyedWhileReadsAreUnderWay) {
  const DirectFile file = DirectFile::Open(path_).value();
  auto memory =
      AlignedBuffer::Allocate(kDirectAlignment * 8 * kDepth, {.alignment = kDirectAlignment})
          .value();
  const std::size_t slice = memory.size().count() / kDepth;
  for (int round = 0; round < 50; ++round) {
    if (reader_ == nullptr) reader_ = GetParam().make().value();
    Serve(file.fd());
    std::ranges::fill(memory.bytes(), kUntouched);
    std::vector<ReadRequest> requests;
    for (std::uint64_t tag = 0; tag < kDepth; ++tag) {
      requests.push_back({.fd = file.fd(),
                          .offset = tag * kDirectAlignment.count(),
                          .target = memory.bytes().subspan(tag * slice, slice),
                          .tag = tag});
    }
    reader_->Submit(requests);
    reader_.reset();
    for (const ReadRequest& request : requests) {
      ASSERT_TRUE(IsRight(request.offset, request.target) || IsUntouched(request.target))
          << "round " << round << ", byte " << request.offset;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, AsyncReaders, testing::Values(Uring(), Threads(), Throttled(), Fake()),
                         [](const auto& kind) { return kind.param.name; });

TEST(MakeReader, GivesWhatWasAskedForOrSaysWhyNot) {
  EXPECT_EQ(MakeReader({.kind = ReaderKind::kThreads}).value()->name(), "threads");
  std::string why;
  const auto any = MakeReader({.depth = 5}, &why);
  ASSERT_TRUE(any.ok());
  EXPECT_EQ((*any)->depth(), 5u);
  const auto uring = MakeReader({.kind = ReaderKind::kUring});
  EXPECT_EQ((*any)->name(), uring.ok() ? "io_uring" : "threads");
  EXPECT_EQ(why, uring.ok() ? "" : uring.status().message());
}

TEST(MakeReader, RefusesADepthThatNoReaderHas) {
  for (const std::size_t depth : {std::size_t{0}, kMaxReaderDepth + 1}) {
    EXPECT_EQ(MakeReader({.depth = depth}).status().code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(MakeReader({.kind = ReaderKind::kThreads, .depth = kMaxReaderDepth}).ok());
}

TEST(ReaderKind, ReadsTheNamesItPrints) {
  for (const ReaderKind kind : {ReaderKind::kAuto, ReaderKind::kUring, ReaderKind::kThreads}) {
    EXPECT_EQ(ReaderKindByName(Name(kind)), kind);
  }
  EXPECT_EQ(ReaderKindByName("aio"), std::nullopt);
}

}  // namespace
}  // namespace troupe
