#include "io/disk_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>

#include "io/thread_reader.h"
#include "testing/fake_reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

// A medium of exact speed that moves the clock itself: bytes pass one read after the other, each
// read takes a latency besides.
class ExactMedium final : public AsyncReader {
 public:
  ExactMedium(ManualClock& clock, Nanos latency, Nanos per_kib)
      : clock_(clock), latency_(latency), per_kib_(per_kib) {}

  std::string_view name() const override { return "exact"; }
  std::size_t depth() const override { return 8; }
  std::size_t under_way() const override { return passing_.size(); }

  void Submit(std::span<const ReadRequest> requests) override {
    for (const ReadRequest& request : requests) {
      free_ = std::max(free_, clock_.Now()) +
              static_cast<Nanos>(request.target.size() / 1024) * per_kib_;
      passing_.push_back(
          {AnswerTo(request, static_cast<std::int64_t>(request.target.size())), free_ + latency_});
      most_under_way_ = std::max(most_under_way_, passing_.size());
      most_bytes_under_way_ =
          std::max(most_bytes_under_way_, passing_.size() * request.target.size());
      bytes_ += request.target.size();
      last_byte_ = std::max(last_byte_, request.offset + request.target.size());
      aligned_ =
          aligned_ && request.offset % kDirectAlignment.count() == 0 &&
          reinterpret_cast<std::uintptr_t>(request.target.data()) % kDirectAlignment.count() == 0;
    }
  }

  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos>) override {
    if (passing_.empty()) return;
    clock_.Advance(std::max<Nanos>(passing_.front().due - clock_.Now(), 0));
    answers.push_back(passing_.front().answer);
    passing_.pop_front();
  }

  std::size_t most_under_way() const { return most_under_way_; }
  std::uint64_t most_bytes_under_way() const { return most_bytes_under_way_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t last_byte() const { return last_byte_; }
  bool aligned() const { return aligned_; }

 private:
  struct Passing {
    ReadAnswer answer;
    Nanos due;
  };
  ManualClock& clock_;
  const Nanos latency_, per_kib_;
  std::deque<Passing> passing_;
  Nanos free_ = 0;
  std::size_t most_under_way_ = 0;
  std::uint64_t most_bytes_under_way_ = 0;
  std::uint64_t bytes_ = 0, last_byte_ = 0;
  bool aligned_ = true;
};

class DiskProbe : public testing::Test {
 protected:
  // A file with a hole: no block of the disk is used.
  DirectFile FileOf(Bytes size) const {
    const std::string path = folder_.Write("experts", "");
    TROUPE_CHECK(::truncate(path.c_str(), static_cast<off_t>(size.count())) == 0);
    return DirectFile::Open(path).value();
  }

  TempFolder folder_;
  ManualClock clock_;
};

TEST_F(DiskProbe, FindsTheLatencyAndTheRateOfAMediumThatHasThem) {
  const DirectFile file = FileOf(64_MiB);
  ExactMedium medium(clock_, 100'000, 1'000);
  const auto speeds = ProbeDisk(medium, file, clock_).value();
  ASSERT_EQ(speeds.size(), 5u);
  for (const DiskSpeed& speed : speeds) {
    const auto kib = static_cast<double>(speed.request.count()) / 1024;
    EXPECT_DOUBLE_EQ(speed.lone_seconds, 100e-6 + kib * 1e-6) << ToString(speed.request);
    // 8 small reads under way do not fill this medium: then each 8 of them take one latency.
    const double full = std::min(1024e6, 8 * 1024 * kib / (100e-6 + kib * 1e-6));
    EXPECT_NEAR(speed.bytes_per_second, full, full * 0.05) << ToString(speed.request);
  }
}

TEST_F(DiskProbe, ReadsNoMoreThanItMayAndOnlyInsideTheFileAndAligned) {
  const DirectFile file = FileOf(Bytes((5 << 20) + 100));
  for (const Bytes most : {256_MiB, 20_MiB, 1_MiB}) {
    ExactMedium medium(clock_, 10'000, 1'000);
    ASSERT_TRUE(ProbeDisk(medium, file, clock_, {.most = most}).ok());
    EXPECT_LE(medium.bytes(), most.count());
    EXPECT_GE(medium.bytes(), most.count() / 8);
    EXPECT_LE(medium.last_byte(), file.size());
    EXPECT_TRUE(medium.aligned());
    EXPECT_EQ(medium.most_under_way(), medium.depth());
  }
}

TEST_F(DiskProbe, HasNoMoreUnderWayThanTheMemoryHoldsAndLeavesOutSizesThatAreLarger) {
  const DirectFile file = FileOf(64_MiB);
  ExactMedium medium(clock_, 10'000, 1'000);
  const auto speeds = ProbeDisk(medium, file, clock_, {.memory = 2_MiB}).value();
  ASSERT_EQ(speeds.size(), 4u);
  EXPECT_EQ(speeds.back().request, 1_MiB);
  EXPECT_LE(medium.most_bytes_under_way(), (2_MiB).count());
}

TEST_F(DiskProbe, LeavesOutSizesThatTheFileDoesNotHold) {
  const DirectFile file = FileOf(300_KiB);
  ExactMedium medium(clock_, 10'000, 1'000);
  const auto speeds = ProbeDisk(medium, file, clock_).value();
  std::vector<Bytes> sizes;
  for (const DiskSpeed& speed : speeds) sizes.push_back(speed.request);
  EXPECT_THAT(sizes, testing::ElementsAre(4_KiB, 64_KiB, 256_KiB));
}

TEST_F(DiskProbe, RefusesAFileTooSmallToSayAnything) {
  const DirectFile file = FileOf(100_B);
  ExactMedium medium(clock_, 10'000, 1'000);
  const auto speeds = ProbeDisk(medium, file, clock_);
  EXPECT_EQ(speeds.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(speeds.status().message(), testing::HasSubstr(file.path() + ": 100 bytes"));
}

TEST_F(DiskProbe, NamesFileAndPlaceOfAReadThatFailsAndLeavesNothingUnderWay) {
  const DirectFile file = FileOf(8_MiB);
  std::vector<std::byte> bytes(file.size());
  for (const auto fault : {FakeReader::Fault::kError, FakeReader::Fault::kShort}) {
    FakeReader fake(8);
    fake.AddFile(file.fd(), bytes);
    fake.Hold(true);  // so that others are under way when it comes
    fake.SetScript([&, n = 0](const ReadRequest&) mutable {
      return ++n == 100 ? fault : FakeReader::Fault::kNone;
    });
    const auto speeds = ProbeDisk(fake, file, clock_);
    ASSERT_FALSE(speeds.ok());
    EXPECT_THAT(speeds.status().message(), testing::StartsWith(file.path() + ": "));
    EXPECT_THAT(speeds.status().message(),
                testing::HasSubstr(fmt::format("byte {}", fake.log().at(99).second)));
    EXPECT_EQ(fake.under_way(), 0u);
  }
}

TEST_F(DiskProbe, MeasuresARealFile) {
  const DirectFile file = FileOf(1_MiB);
  auto reader = MakeThreadReader(4).value();
  const MonotonicClock clock;
  const auto speeds = ProbeDisk(*reader, file, clock, {.most = 8_MiB}).value();
  EXPECT_EQ(speeds.size(), 4u);
  for (const DiskSpeed& speed : speeds) {
    EXPECT_GT(speed.lone_seconds, 0);
    EXPECT_GT(speed.bytes_per_second, 0);
  }
}

}  // namespace
}  // namespace troupe
