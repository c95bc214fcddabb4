#include "io/direct_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/fd.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class DirectFileTest : public testing::Test {
 protected:
  // Last written long ago, so that a clock of whatever grain shows the next write.
  DirectFileTest() : path_(folder_.Write("experts", std::string(10'000, 'x'))) { SetTime(path_); }

  static void SetTime(const std::string& path) {
    const std::array<timespec, 2> long_ago = {
        {{.tv_sec = 1'000'000'000}, {.tv_sec = 1'000'000'000}}};
    TROUPE_CHECK(::utimensat(AT_FDCWD, path.c_str(), long_ago.data(), 0) == 0);
  }

  static void WriteInPlace(const std::string& path, std::string_view text) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    TROUPE_CHECK(::pwrite(fd.get(), text.data(), text.size(), 100) ==
                 static_cast<ssize_t>(text.size()));
  }

  TempFolder folder_;
  const std::string path_;
};

TEST_F(DirectFileTest, ReadsAlignedPiecesAndTheShortLastOne) {
  const DirectFile file = DirectFile::Open(path_).value();
  EXPECT_EQ(file.size(), 10'000u);
  EXPECT_EQ(file.path(), path_);
  alignas(4096) std::array<char, 4096> piece{};
  ASSERT_EQ(::pread(file.fd(), piece.data(), piece.size(), 8192), 10'000 - 8192);
  EXPECT_EQ(piece[0], 'x');
}

TEST_F(DirectFileTest, SaysWhetherReadsAreDirect) {
  const DirectFile file = DirectFile::Open(path_).value();
  const int flags = ::fcntl(file.fd(), F_GETFL);
  EXPECT_EQ((flags & O_DIRECT) != 0, file.direct());
  EXPECT_EQ(flags & O_NONBLOCK, 0);
}

TEST_F(DirectFileTest, ReadsThroughThePageCacheWhereTheFileLiesInMemory) {
  struct statfs shm {};
  if (::statfs("/dev/shm", &shm) != 0 || shm.f_type != TMPFS_MAGIC) {
    GTEST_SKIP() << "no tmpfs at /dev/shm";
  }
  std::string name = "/dev/shm/troupe_test.XXXXXX";
  const UniqueFd made(::mkstemp(name.data()));
  ASSERT_TRUE(made.valid());
  ASSERT_EQ(::pwrite(made.get(), "hello", 5, 0), 5);
  const auto file = DirectFile::Open(name);
  ::unlink(name.c_str());
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_FALSE(file->direct());
  std::array<char, 3> odd{};
  EXPECT_EQ(::pread(file->fd(), odd.data(), odd.size(), 1), 3);
  EXPECT_EQ(std::string_view(odd.data(), 3), "ell");
}

TEST_F(DirectFileTest, AnEmptyFileOpens) {
  const DirectFile file = DirectFile::Open(folder_.Write("empty", "")).value();
  EXPECT_EQ(file.size(), 0u);
  EXPECT_TRUE(file.CheckUnchanged().ok());
}

TEST_F(DirectFileTest, RefusesFoldersAndPipesAndNamesWhatIsMissing) {
  EXPECT_THAT(DirectFile::Open(folder_.path().string()).status().message(),
              HasSubstr("a directory"));
  ASSERT_EQ(::mkfifo(folder_.PathOf("fifo").c_str(), 0600), 0);
  EXPECT_THAT(DirectFile::Open(folder_.PathOf("fifo")).status().message(), HasSubstr("pipe"));
  const auto missing = DirectFile::Open(folder_.PathOf("none"));
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr(folder_.PathOf("none")));
}

TEST_F(DirectFileTest, AnUntouchedFileIsUnchanged) {
  const DirectFile file = DirectFile::Open(path_).value();
  EXPECT_TRUE(file.CheckUnchanged().ok());
}

TEST_F(DirectFileTest, SeesThatTheFileWasWrittenTo) {
  const DirectFile file = DirectFile::Open(path_).value();
  WriteInPlace(path_, "y");
  EXPECT_EQ(file.CheckUnchanged().message(),
            path_ + ": changed while in use: it was written to after it was opened");
}

TEST_F(DirectFileTest, SeesThatTheFileWasCutOrGrewEvenIfItsTimeIsPutBack) {
  const DirectFile file = DirectFile::Open(path_).value();
  for (const off_t size : {9'999, 10'001}) {
    ASSERT_EQ(::truncate(path_.c_str(), size), 0);
    SetTime(path_);
    EXPECT_EQ(file.CheckUnchanged().message(),
              fmt::format("{}: changed while in use: 10000 bytes when it was opened, {} now", path_,
                          size));
  }
}

TEST_F(DirectFileTest, AFileReplacedUnderItsNameStaysWhatWasOpened) {
  const DirectFile file = DirectFile::Open(path_).value();
  std::filesystem::rename(folder_.Write("new", "other"), path_);
  EXPECT_TRUE(file.CheckUnchanged().ok());
}

}  // namespace
}  // namespace troupe
