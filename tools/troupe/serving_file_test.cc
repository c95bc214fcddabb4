#include "troupe/serving_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const ServingFacts kFacts{
    .model = "/srv/a \"model\".gguf", .address = "http://[::1]:8080", .budget = 6_GiB};

// Servers keep their files in a folder of the test's.
class ServingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = testing::TempDir() + "/serving-" + std::to_string(::getpid());
    std::filesystem::create_directories(runtime_);
    if (const char* const before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    ::setenv("XDG_RUNTIME_DIR", runtime_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(runtime_);
    if (before_) {
      ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_RUNTIME_DIR");
    }
  }
  std::string Folder() const { return runtime_ + "/troupe"; }
  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(Folder());
    std::ofstream(Folder() + "/" + name) << text;
  }

  std::string runtime_;
  std::optional<std::string> before_;
};

TEST_F(ServingFileTest, IsThereAsLongAsTheServer) {
  {
    const ServingFile file = ServingFile::Announce(kFacts);
    EXPECT_EQ(file.path(), Folder() + "/" + std::to_string(::getpid()) + ".json");
    const std::vector<RunningServer> servers = FindServersIn(Folder());
    ASSERT_EQ(servers.size(), 1u);
    EXPECT_EQ(servers[0].pid, ::getpid());
    EXPECT_EQ(servers[0].facts, kFacts);
    EXPECT_THAT(FindServers(), testing::Contains(servers[0]));
  }
  EXPECT_THAT(FindServersIn(Folder()), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(Folder()));
}

TEST_F(ServingFileTest, NamesTheModelForWhoIsInAnotherFolder) {
  const ServingFile file = ServingFile::Announce({.model = "m.gguf", .address = "http://a:1"});
  EXPECT_EQ(FindServersIn(Folder()).at(0).facts.model,
            (std::filesystem::current_path() / "m.gguf").string());
}

TEST_F(ServingFileTest, OfAProcessThatWasKilledIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) {
    const ServingFile kept = ServingFile::Announce(kFacts);
    ::pause();
    ::_exit(0);
  }
  const std::string path = Folder() + "/" + std::to_string(child) + ".json";
  while (FindServersIn(Folder()).empty()) ::usleep(1000);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THAT(FindServersIn(Folder()), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServingFileTest, OfAnotherProcessWithTheSameNumberIsRemoved) {
  const std::string pids = std::filesystem::read_symlink("/proc/self/ns/pid").string();
  Write("1.json", ServingText({.pid = ::getpid(), .start = 1, .pids = pids, .facts = kFacts}));
  EXPECT_THAT(FindServersIn(Folder()), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(Folder() + "/1.json"));
}

TEST_F(ServingFileTest, OfAContainerThatSharesTheFolderIsLeftAlone) {
  Write("1.json", ServingText({.pid = ::getpid(), .start = 1, .pids = "pid:[7]", .facts = kFacts}));
  EXPECT_THAT(FindServersIn(Folder()), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(Folder() + "/1.json"));
}

TEST_F(ServingFileTest, FilesOfOthersInTheFolderAreLeftAlone) {
  Write("notes.txt", "hello");
  Write("2.json", "{");
  EXPECT_THAT(FindServersIn(Folder()), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(Folder() + "/notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(Folder() + "/2.json"));
}

TEST_F(ServingFileTest, AFolderThatCannotBeMadeStopsNoServer) {
  std::ofstream(Folder()) << "a file in its place";
  testing::internal::CaptureStderr();
  EXPECT_EQ(ServingFile::Announce(kFacts).path(), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("troupe ps will not show this server: .*\n"));
}

TEST_F(ServingFileTest, ALinkInPlaceOfTheFolderIsNotFollowed) {
  std::filesystem::create_directories(runtime_ + "/elsewhere");
  std::filesystem::create_directory_symlink(runtime_ + "/elsewhere", Folder());
  testing::internal::CaptureStderr();
  EXPECT_EQ(ServingFile::Announce(kFacts).path(), "");
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::filesystem::is_empty(runtime_ + "/elsewhere"));
}

TEST_F(ServingFileTest, OnlyItsUserMaySeeTheFolder) {
  const ServingFile file = ServingFile::Announce(kFacts);
  struct stat found {};
  ASSERT_EQ(::stat(Folder().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0700u);
}

TEST(TextOfAServingFile, IsReadAsItIsWritten) {
  const RunningServer server{.pid = 77, .start = 123456789012, .facts = kFacts};
  EXPECT_EQ(ParseServing("77.json", ServingText(server)).value(), server);
  EXPECT_FALSE(ParseServing("77.json", R"({"pid":0})").ok());
}

TEST(StartOfAProcess, IsFoundBehindANameThatHoldsAnything) {
  const std::string stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
  EXPECT_EQ(StartTimeIn(stat), 4242u);
  EXPECT_EQ(StartTimeIn(""), std::nullopt);
  EXPECT_EQ(StartTimeIn("7 (a) S 1 2"), std::nullopt);
}

}  // namespace
}  // namespace troupe
