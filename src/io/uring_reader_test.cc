// What io_uring alone has: memory that the kernel refuses or accepts to keep.
#include "io/uring_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "io/aligned_buffer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

class UringReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto reader = MakeUringReader(1);
    if (!reader.ok()) GTEST_SKIP() << reader.status().message();
  }

  bool ReadsRight(AsyncReader& reader, std::span<std::byte> target) const {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    std::ranges::fill(target, std::byte{0});
    const ReadRequest request = {.fd = fd.get(), .offset = 0, .target = target};
    reader.Submit({&request, 1});
    std::vector<ReadAnswer> answers;
    reader.Collect(answers, std::nullopt);
    return answers.size() == 1 && answers[0].bytes == target.size() &&
           std::ranges::all_of(target, [](std::byte b) { return b == std::byte{'x'}; });
  }

  TempFolder folder_;
  const std::string path_ = folder_.Write("a", std::string(100'000, 'x'));
};

TEST_F(UringReaderTest, ReadsIntoEachPieceOfRegisteredMemoryAcrossThemAndBesideThem) {
  auto memory = AlignedBuffer::Allocate(256_KiB, {.alignment = kPage}).value();
  const std::span<std::byte> all = memory.bytes();
  auto reader = MakeUringReader(4).value();
  // What a process may pin is not ours to know: that all reads are right holds either way.
  reader->RegisterMemory(all.subspan(0, 64 << 10));
  reader->RegisterMemory(all.subspan(64 << 10, 64 << 10));
  EXPECT_TRUE(ReadsRight(*reader, all.subspan(100, 5000)));
  EXPECT_TRUE(ReadsRight(*reader, all.subspan(70'001, 50'000)));
  EXPECT_TRUE(ReadsRight(*reader, all.subspan(30 << 10, 64 << 10)));
  EXPECT_TRUE(ReadsRight(*reader, all.subspan(100 << 10, 64 << 10)));
  EXPECT_TRUE(ReadsRight(*reader, all.subspan(200 << 10, 10)));
  reader.reset();
}

// What the kernel holds of this process's memory, and charges to it even when it is freed.
std::string PinnedMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPin:")) return line;
  }
  return "";
}

TEST_F(UringReaderTest, ReleasesRegisteredMemoryBeforeItIsGone) {
  auto memory = AlignedBuffer::Allocate(16_MiB, {.alignment = kPage}).value();
  const std::string before = PinnedMemory();
  auto reader = MakeUringReader(4).value();
  if (!reader->RegisterMemory(memory.bytes())) GTEST_SKIP() << "this process may not pin memory";
  EXPECT_TRUE(ReadsRight(*reader, memory.bytes().first(100'000)));
  EXPECT_NE(PinnedMemory(), before);
  reader.reset();
  EXPECT_EQ(PinnedMemory(), before);
}

TEST_F(UringReaderTest, MemoryThatIsForgottenCanBeGivenBackAndReadIntoAgain) {
  auto memory = AlignedBuffer::Allocate(16_MiB, {.alignment = kPage}).value();
  const std::string before = PinnedMemory();
  auto reader = MakeUringReader(4).value();
  if (!reader->RegisterMemory(memory.bytes().first(8 << 20)) ||
      !reader->RegisterMemory(memory.bytes().subspan(8 << 20))) {
    GTEST_SKIP() << "this process may not pin memory";
  }
  const std::string both = PinnedMemory();
  EXPECT_TRUE(ReadsRight(*reader, memory.bytes().subspan(12 << 20, 100'000)));
  ASSERT_TRUE(reader->ForgetMemory(memory.bytes().subspan(12 << 20)));
  EXPECT_NE(PinnedMemory(), both);
  EXPECT_NE(PinnedMemory(), before);  // the first half is still registered
  ASSERT_TRUE(memory.GiveBackFrom(12_MiB));
  EXPECT_TRUE(ReadsRight(*reader, memory.bytes().subspan(12 << 20, 100'000)));
  EXPECT_TRUE(ReadsRight(*reader, memory.bytes().subspan(9 << 20, 100'000)));
  EXPECT_TRUE(ReadsRight(*reader, memory.bytes().first(100'000)));
  ASSERT_TRUE(reader->ForgetMemory(memory.bytes()));
  EXPECT_EQ(PinnedMemory(), before);
}

TEST_F(UringReaderTest, ReadsPlainlyWhereTheProcessMayNotPinSoMuch) {
  constexpr int kCannotBecomeAnother = 2;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    // Root is under no limit; the file stays readable through what was opened.
    const UniqueFd before(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(kCannotBecomeAnother);
    auto reader = MakeUringReader(1);
    if (!reader.ok()) ::_exit(0);
    auto memory = AlignedBuffer::Allocate(16_MiB, {.alignment = kPage}).value();
    if ((*reader)->RegisterMemory(memory.bytes())) ::_exit(3);
    const ReadRequest request = {
        .fd = before.get(), .offset = 0, .target = memory.bytes().first(100'000)};
    (*reader)->Submit({&request, 1});
    std::vector<ReadAnswer> answers;
    (*reader)->Collect(answers, std::nullopt);
    ::_exit(answers.size() == 1 && answers[0].bytes == 100'000 ? 0 : 4);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how));
  if (WEXITSTATUS(how) == kCannotBecomeAnother) GTEST_SKIP() << "root alone in its user namespace";
  EXPECT_EQ(WEXITSTATUS(how), 0);
}

}  // namespace
}  // namespace troupe
