#include "io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class ReadFileTest : public ::testing::Test {
 protected:
  std::string PathOf(std::string_view name) const { return folder_.PathOf(name); }
  std::string Write(std::string_view name, std::string_view text) const {
    return folder_.Write(name, text);
  }

  TempFolder folder_;
};

std::string ReadText(const ReadFile& file, std::uint64_t offset, std::size_t n) {
  std::string text(n, '?');
  const Status status = file.ReadAt(offset, std::as_writable_bytes(std::span(text)));
  return status.ok() ? text : status.ToString();
}

TEST_F(ReadFileTest, ReadsAnyRangeIncludingTheEmptyOneAtTheEnd) {
  const ReadFile file = ReadFile::Open(Write("a", "0123456789")).value();
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(ReadText(file, 0, 10), "0123456789");
  EXPECT_EQ(ReadText(file, 7, 2), "78");
  EXPECT_EQ(ReadText(file, 10, 0), "");
}

TEST_F(ReadFileTest, AReadPastTheEndNamesThePathAndThePlace) {
  const std::string path = Write("a", "0123456789");
  const ReadFile file = ReadFile::Open(path).value();
  EXPECT_EQ(ReadText(file, 8, 3),
            "data loss: " + path + ": 3 bytes wanted at byte 8, but it ends at byte 10");
  std::array<std::byte, 1> out{};
  EXPECT_EQ(file.ReadAt(std::numeric_limits<std::uint64_t>::max(), out).code(), Code::kDataLoss);
}

TEST_F(ReadFileTest, AFileCutAfterOpeningGivesAnErrorNotOldBytes) {
  const std::string path = Write("a", "0123456789");
  const ReadFile file = ReadFile::Open(path).value();
  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  EXPECT_EQ(ReadText(file, 2, 6),
            "data loss: " + path + ": 6 bytes wanted at byte 2, but it ends at byte 4");
}

TEST_F(ReadFileTest, AMissingFileIsNotFoundAndNamed) {
  const auto file = ReadFile::Open(PathOf("none"));
  EXPECT_EQ(file.status().code(), Code::kNotFound);
  EXPECT_THAT(file.status().message(), HasSubstr(PathOf("none")));
}

TEST_F(ReadFileTest, RefusesFoldersAndPipesWithoutWaiting) {
  EXPECT_THAT(ReadFile::Open(folder_.path().string()).status().message(), HasSubstr("a directory"));
  ASSERT_EQ(::mkfifo(PathOf("fifo").c_str(), 0600), 0);
  EXPECT_THAT(ReadFile::Open(PathOf("fifo")).status().message(), HasSubstr("pipe"));
}

TEST_F(ReadFileTest, IdentityIsSharedByLinksAndChangedByWriting) {
  const std::string path = Write("a", "0123456789");
  std::filesystem::create_hard_link(path, PathOf("b"));
  const FileIdentity before = ReadFile::Open(path).value().identity();
  EXPECT_EQ(ReadFile::Open(PathOf("b")).value().identity(), before);
  EXPECT_NE(ReadFile::Open(Write("c", "0123456789")).value().identity(), before);
  Write("a", "0123456789+");
  EXPECT_NE(ReadFile::Open(path).value().identity(), before);
}

TEST_F(ReadFileTest, OnlyAFileHasAnIdentity) {
  const std::string path = Write("a", "0123456789");
  EXPECT_EQ(IdentityOf(path), ReadFile::Open(path).value().identity());
  EXPECT_EQ(IdentityOf(PathOf("none")), std::nullopt);
  EXPECT_EQ(IdentityOf(folder_.path().string()), std::nullopt);
}

TEST_F(ReadFileTest, ThreadsReadTheirOwnRangesAtOnce) {
  std::string text(1 << 16, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 / 3);
  const ReadFile file = ReadFile::Open(Write("a", text)).value();
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t offset = (i * 131 + t * 1009) % (text.size() - 100);
        wrong[t] += ReadText(file, offset, 100) != text.substr(offset, 100);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

}  // namespace
}  // namespace troupe
