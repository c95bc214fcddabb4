#include "io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "io/temporary_name.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class AtomicFileTest : public ::testing::Test {
 protected:
  std::string Contents() const { return folder_.Read("model.gguf"); }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("model.gguf");
};

TEST_F(AtomicFileTest, IsThereAfterCommitAndNotBefore) {
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  ASSERT_TRUE(writer.Append(BytesOf("hello, ")).ok());
  ASSERT_TRUE(writer.Append(BytesOf("world")).ok());
  EXPECT_EQ(writer.size(), 12u);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_EQ(Contents(), "hello, world");
  EXPECT_EQ(folder_.Count(), 1u);
}

TEST_F(AtomicFileTest, WhatIsSyncedOnTheWayIsWholeAtTheEndAndNotThereBefore) {
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  ASSERT_TRUE(writer.Append(BytesOf("hello, ")).ok());
  ASSERT_TRUE(writer.SyncSoFar().ok());
  EXPECT_EQ(folder_.Count(), 0u);
  EXPECT_EQ(writer.size(), 7u);
  ASSERT_TRUE(writer.Append(BytesOf("world")).ok());
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_EQ(Contents(), "hello, world");
}

TEST_F(AtomicFileTest, ReplacesAnOldFileOnlyOnCommit) {
  folder_.Write("model.gguf", "old");
  {
    AtomicFileWriter abandoned = AtomicFileWriter::Create(path_).value();
    ASSERT_TRUE(abandoned.Append(BytesOf("never seen")).ok());
  }
  EXPECT_EQ(Contents(), "old");
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  ASSERT_TRUE(writer.Append(BytesOf("new")).ok());
  EXPECT_EQ(Contents(), "old");
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_EQ(Contents(), "new");
  EXPECT_EQ(folder_.Count(), 1u);
}

TEST_F(AtomicFileTest, WithoutCommitLeavesNothing) {
  {
    AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
    ASSERT_TRUE(writer.Append(std::vector<std::byte>(1 << 20)).ok());
    const AtomicFileWriter moved = std::move(writer);
  }
  EXPECT_EQ(folder_.Count(), 0u);
}

TEST_F(AtomicFileTest, AKilledWriterLeavesNothingWhereUnnamedFilesExist) {
  if (const int fd = ::open(folder_.path().c_str(), O_TMPFILE | O_WRONLY, 0600); fd >= 0) {
    ::close(fd);
  } else {
    GTEST_SKIP() << "this file system has no O_TMPFILE";
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto writer = AtomicFileWriter::Create(path_);
    if (writer.ok() && writer->Append(std::vector<std::byte>(1 << 20)).ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how));
  EXPECT_EQ(folder_.Count(), 0u);
}

// As on a file system without unnamed files: everything that can go wrong with a name.
class NamedAtomicFileTest : public AtomicFileTest {
 protected:
  static constexpr auto kNamed = AtomicFileWriter::Until::kNamed;

  // Leaves what a writer leaves that is killed half-way.
  void KillAWriter() const {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = AtomicFileWriter::Create(path_, kNamed);
      if (writer.ok() && writer->Append(std::vector<std::byte>(1 << 20)).ok()) ::raise(SIGKILL);
      ::_exit(1);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how));
  }
};

TEST_F(NamedAtomicFileTest, IsThereAfterCommitAndLeavesNothingWithoutIt) {
  {
    AtomicFileWriter abandoned = AtomicFileWriter::Create(path_, kNamed).value();
    ASSERT_TRUE(abandoned.Append(std::vector<std::byte>(1 << 20)).ok());
    EXPECT_EQ(folder_.Count(), 1u);
  }
  EXPECT_EQ(folder_.Count(), 0u);
  AtomicFileWriter writer = AtomicFileWriter::Create(path_, kNamed).value();
  ASSERT_TRUE(writer.Append(BytesOf("new")).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_EQ(Contents(), "new");
  EXPECT_EQ(folder_.Count(), 1u);
}

TEST_F(NamedAtomicFileTest, WhatAKilledWriterLeftTheNextOneOfThePathRemoves) {
  for (const auto until : {kNamed, AtomicFileWriter::Until::kUnnamed}) {
    KillAWriter();
    ASSERT_EQ(folder_.Count(), 1u);
    AtomicFileWriter writer = AtomicFileWriter::Create(path_, until).value();
    ASSERT_TRUE(writer.Append(BytesOf("new")).ok());
    ASSERT_TRUE(writer.Commit().ok());
    EXPECT_EQ(folder_.Count(), 1u);
    EXPECT_EQ(Contents(), "new");
    std::filesystem::remove(path_);
  }
}

TEST_F(NamedAtomicFileTest, AnotherWriterOfThePathKeepsItsBytes) {
  AtomicFileWriter first = AtomicFileWriter::Create(path_, kNamed).value();
  ASSERT_TRUE(first.Append(BytesOf("first")).ok());
  AtomicFileWriter second = AtomicFileWriter::Create(path_, kNamed).value();
  EXPECT_EQ(folder_.Count(), 2u);
  ASSERT_TRUE(second.Append(BytesOf("second")).ok());
  ASSERT_TRUE(first.Commit().ok());
  EXPECT_EQ(Contents(), "first");
  ASSERT_TRUE(second.Commit().ok());
  EXPECT_EQ(Contents(), "second");
  EXPECT_EQ(folder_.Count(), 1u);
}

TEST_F(NamedAtomicFileTest, RemovesNothingThatIsNoTemporaryOfThePathOnThisMachine) {
  const std::string of_path = "model.gguf";
  const std::string rest = TemporaryName(path_).substr(path_.size());  // ".HOST-PID-N.troupe-tmp"
  const std::string left = of_path + rest;
  const std::vector<std::string> others = {"model.gguf.12.0.tmp",
                                           "model.gguf.troupe-tmp",
                                           "model.gguf.elsewhere-1-0.troupe-tmp",
                                           left + ".bak",
                                           "mod" + rest,
                                           "model.gguf.old" + rest,
                                           "a." + left};
  for (const std::string& name : others) folder_.Write(name, "somebody's");
  std::filesystem::create_directory(TemporaryName(path_));
  folder_.Write(left, "left behind");
  ASSERT_TRUE(AtomicFileWriter::Create(path_).ok());
  EXPECT_EQ(folder_.Count(), others.size() + 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.PathOf(left)));
}

TEST_F(AtomicFileTest, WhatIsSealedCanBeReadBeforeItHasItsName) {
  for (const auto until : {AtomicFileWriter::Until::kUnnamed, AtomicFileWriter::Until::kNamed}) {
    AtomicFileWriter writer = AtomicFileWriter::Create(path_, until).value();
    ASSERT_TRUE(writer.Append(BytesOf("sealed")).ok());
    const std::string at = writer.Seal().value();
    std::ifstream in(at, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "sealed");
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_TRUE(writer.Commit().ok());
    EXPECT_EQ(Contents(), "sealed");
    std::filesystem::remove(path_);
  }
}

TEST_F(AtomicFileTest, AnyMixOfAppendsAndPatchesGivesTheSameBytesAsInMemory) {
  Rng rng(TestSeed());
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  std::string model;
  for (int step = 0; step < 300; ++step) {
    // Sizes on both sides of the buffer's 256 KiB, small ones more often.
    std::string piece(rng.Below(std::uint64_t{1} << (1 + rng.Below(19))), '\0');
    for (char& c : piece) c = static_cast<char>(rng.Next());
    if (rng.Below(4) == 0 && piece.size() <= model.size()) {
      const std::size_t offset = rng.Below(model.size() - piece.size() + 1);
      ASSERT_TRUE(writer.WriteAt(offset, BytesOf(piece)).ok());
      model.replace(offset, piece.size(), piece);
    } else {
      ASSERT_TRUE(writer.Append(BytesOf(piece)).ok());
      model += piece;
    }
    ASSERT_EQ(writer.size(), model.size());
  }
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_TRUE(Contents() == model);  // not EXPECT_EQ: megabytes are no message
}

TEST_F(AtomicFileTest, AFullDiskIsResourceExhaustedNamesTheFileAndIsNotForgotten) {
  // A limit on the file's size stands in for a full disk: both refuse a write half-way.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
    const Status full = writer.Append(std::vector<std::byte>(2 << 20));
    const bool right = full.code() == Code::kResourceExhausted &&
                       full.message().find(path_) != std::string::npos &&
                       writer.Append(BytesOf("x")) == full && writer.Commit() == full;
    ::_exit(right ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(AtomicFileTest, AMissingFolderIsNotFoundAndNamed) {
  const std::string path = folder_.PathOf("none/m.gguf");
  const auto writer = AtomicFileWriter::Create(path);
  EXPECT_EQ(writer.status().code(), Code::kNotFound);
  EXPECT_THAT(writer.status().message(), HasSubstr(path));
}

TEST_F(AtomicFileTest, NeverTakesThePlaceOfAFolderAPipeOrADevice) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(AtomicFileWriter::Create(path_).status().message(), HasSubstr("is a folder"));
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Status status = AtomicFileWriter::Create(path_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(folder_.Count(), 1u);
}

TEST_F(AtomicFileTest, AFolderThatAppearsMeanwhileFailsTheCommitAndStays) {
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  std::filesystem::create_directory(path_);
  EXPECT_THAT(writer.Commit().message(), HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(AtomicFileTest, WritesWhereALinkLeadsAndLeavesTheLink) {
  const std::string link = folder_.PathOf("link");
  folder_.Write("target", "old");
  std::filesystem::create_symlink(folder_.PathOf("target"), link);
  AtomicFileWriter writer = AtomicFileWriter::Create(link).value();
  ASSERT_TRUE(writer.Append(std::as_bytes(std::span("new", 3))).ok());
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(folder_.Read("target"), "new");
}

TEST_F(AtomicFileTest, HonoursTheUmask) {
  const mode_t before = ::umask(027);
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  ::umask(before);
  ASSERT_TRUE(writer.Commit().ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, APrivateFileIsItsUsersAlone) {
  AtomicFileWriter writer = AtomicFileWriter::Create(path_).value();
  ASSERT_TRUE(writer.MakePrivate().ok());
  ASSERT_TRUE(writer.Commit().ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AtomicFileTest, APathWithoutAFolderMeansTheCurrentOne) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  AtomicFileWriter writer = AtomicFileWriter::Create("model.gguf").value();
  const Status status = writer.Commit();
  std::filesystem::current_path(before);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace troupe
