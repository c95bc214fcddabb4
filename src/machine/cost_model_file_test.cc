#include "machine/cost_model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/log.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

RunningMean Mean(double value, std::uint32_t samples = 1) {
  return {.value = value, .samples = samples};
}

CostModel Model() {
  CostModel model{.memory_bytes_per_second = Mean(1.5e10, 3)};
  model.NoteExpert("Q4_K 64x32, Q4_K 64x32, Q6_K 32x64", 1.25e-4, 3.5e-6);
  model.disk = {
      .direct = false,
      .reads = {{.request = 4_KiB, .lone_seconds = Mean(1e-4), .bytes_per_second = Mean(2e8)},
                {.request = 1_MiB,
                 .lone_seconds = Mean(1e-3),
                 .bytes_per_second = Mean(2e9),
                 .in_runs = Mean(1.7e9, 16)}}};
  return model;
}

const MachineId kMachine{.cpu = "Abacus 3000", .cpus = 4, .kernels = "scalar"};
const std::uint64_t kDevice = makedev(259, 3);

class CostModelFileTest : public testing::Test {
 protected:
  CostModelFileTest() {
    SetWarningSink([this](std::string_view line) { log_.emplace_back(line); });
  }
  ~CostModelFileTest() override { SetWarningSink({}); }

  CostModelFile Load(const MachineId& machine = kMachine) {
    return CostModelFile::Load(machine, Folder());
  }
  std::string Folder() const { return folder_.PathOf("cache/troupe"); }
  std::string Save(const CostModel& model = Model()) {
    CostModelFile file = Load();
    file.Put(2, kDevice, model);
    file.Save();
    return file.path();
  }
  // What Load makes of the saved file after this change, and the one line it logs.
  std::string LogAfter(const std::string& from, const std::string& to) {
    const std::string path = Save();
    const std::string name = std::filesystem::path(path).filename();
    std::string text = folder_.Read("cache/troupe/" + name);
    const std::size_t at = text.find(from);
    TROUPE_CHECK(at != std::string::npos);
    folder_.Write("cache/troupe/" + name, text.replace(at, from.size(), to));
    log_.clear();
    EXPECT_EQ(Load().Get(2, kDevice), CostModel()) << from << " -> " << to;
    return log_.size() == 1 ? log_[0] : fmt::format("{} lines", log_.size());
  }

  TempFolder folder_;
  std::vector<std::string> log_;
};

TEST_F(CostModelFileTest, GivesBackToTheBitWhatWasSaved) {
  Save();
  EXPECT_EQ(Load().Get(2, kDevice), Model());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(CostModelFileTest, KeepsThreadsAndDisksApart) {
  Save();
  const CostModel other_threads = Load().Get(1, kDevice);
  EXPECT_FALSE(other_threads.memory_bytes_per_second.measured());
  EXPECT_THAT(other_threads.experts, IsEmpty());
  EXPECT_EQ(other_threads.disk, Model().disk);
  const CostModel other_disk = Load().Get(2, makedev(8, 1));
  EXPECT_EQ(other_disk.experts, Model().experts);
  EXPECT_FALSE(other_disk.disk.measured());
}

TEST_F(CostModelFileTest, AddsToWhatIsThere) {
  Save();
  CostModelFile file = Load();
  file.Put(1, 7, CostModel{.memory_bytes_per_second = Mean(9e9)});
  file.Save();
  EXPECT_EQ(Load().Get(2, kDevice), Model());
  EXPECT_EQ(Load().Get(1, 7).memory_bytes_per_second, Mean(9e9));
}

TEST_F(CostModelFileTest, ADiskNobodyMeasuredLeavesWhatIsKnownOfIt) {
  Save();
  CostModel model = Model();
  model.disk = {};
  Save(model);
  EXPECT_EQ(Load().Get(2, kDevice).disk, Model().disk);
}

TEST_F(CostModelFileTest, ADamagedFileIsNoFileAndIsWrittenAnew) {
  EXPECT_THAT(LogAfter("\"compute\": [", "\"compute\": [[[{"), HasSubstr("measuring anew"));
  Save();
  log_.clear();
  EXPECT_EQ(Load().Get(2, kDevice), Model());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(CostModelFileTest, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(LogAfter("\"version\": 1", "\"version\": 2"), HasSubstr("version: 2, expected 1"));
  EXPECT_THAT(LogAfter("Abacus", "Calculus"), HasSubstr("measured on another machine"));
  EXPECT_THAT(LogAfter("troupe cost model", "shopping list"),
              HasSubstr("format: \"shopping list\""));
  EXPECT_THAT(LogAfter("\"threads\": 2", "\"threads\": -2"), HasSubstr("compute[0].threads: -2"));
  EXPECT_THAT(LogAfter("\"threads\": 2", "\"threads\": 0"), HasSubstr("compute[0].threads: 0"));
  EXPECT_THAT(LogAfter("\"threads\"", "\"thread\""), HasSubstr("compute[0]: no 'threads'"));
  EXPECT_THAT(LogAfter("\"samples\": 3", "\"samples\": 17"), HasSubstr("samples: 17"));
  EXPECT_THAT(LogAfter("259:3", "259-3"), HasSubstr("disks[0].device: \"259-3\""));
  EXPECT_THAT(LogAfter("\"bytes\": 4096", "\"bytes\": 8000000"), HasSubstr("rising order"));
  EXPECT_THAT(LogAfter("\"bytes\": 4096", "\"bytes\": \"many\""),
              HasSubstr("reads[0].bytes: \"many\""));
  EXPECT_THAT(LogAfter("\"lone_s\"", "\"lonely\""), HasSubstr("no 'lone_s'"));
  EXPECT_THAT(LogAfter("15000000000.0", "-15000000000.0"), HasSubstr("a positive number"));
  EXPECT_THAT(LogAfter("15000000000.0", "1e999"), HasSubstr("1e999"));
  EXPECT_THAT(LogAfter("\"direct\": false", "\"direct\": 1"),
              HasSubstr("disks[0].direct: 1, expected true or false"));
}

TEST_F(CostModelFileTest, AFileCutAnywhereIsNoFile) {
  const std::string name = std::filesystem::path(Save()).filename();
  const std::string text = folder_.Read("cache/troupe/" + name);
  for (std::size_t length = 0; length + 2 < text.size(); length += 7) {
    folder_.Write("cache/troupe/" + name, text.substr(0, length));
    EXPECT_EQ(Load().Get(2, kDevice), CostModel()) << length;
  }
}

TEST_F(CostModelFileTest, AFileThatIsMuchTooLongIsNotRead) {
  const std::string name = std::filesystem::path(Save()).filename();
  folder_.Write("cache/troupe/" + name, std::string(2 << 20, ' '));
  EXPECT_EQ(Load().Get(2, kDevice), CostModel());
  EXPECT_THAT(log_, ElementsAre(HasSubstr("at most 1.0 MiB expected")));
}

TEST_F(CostModelFileTest, AFolderThatCannotBeWrittenIsWarnedOfOnce) {
  folder_.Write("cache", "a file where the folder should be");
  Save();
  Save();
  EXPECT_THAT(log_, ElementsAre(HasSubstr("is not kept: ")));
  EXPECT_THAT(log_.front(), HasSubstr("cost-"));
}

TEST_F(CostModelFileTest, MachinesHaveFilesOfTheirOwn) {
  MachineId more_cpus = kMachine, other_kernels = kMachine, other_cpu = kMachine;
  more_cpus.cpus = 8;
  other_kernels.kernels = "avx512";
  other_cpu.cpu = "Abacus 3001";
  for (const MachineId& other : {more_cpus, other_kernels, other_cpu}) {
    EXPECT_NE(Load(other).path(), Load().path());
  }
  EXPECT_THAT(Load().path(), EndsWith("/cost-" + kMachine.Digest() + ".json"));
  EXPECT_EQ(kMachine.Digest().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(kMachine.Digest().size(), 16u);
}

// The lines of the documentation's example.
std::string ExampleOfTheDocumentation() {
  std::ifstream page(TROUPE_SOURCE_DIR "/docs/formats/cost-model.md");
  std::string example;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("    ")) example += line + "\n";
  }
  return example;
}

TEST_F(CostModelFileTest, TheDocumentationsExampleIsOne) {
  CostModelFile file = Load({.cpu = "AMD EPYC", .cpus = 2, .kernels = "avx512-vnni"});
  const Status status = file.FromJson(ExampleOfTheDocumentation());
  ASSERT_TRUE(status.ok()) << status.message();
  const CostModel model = file.Get(2, makedev(254, 0));
  EXPECT_DOUBLE_EQ(model.memory_bytes_per_second.value, 38.8e9);
  ASSERT_EQ(model.experts.size(), 1u);
  EXPECT_EQ(model.disk.reads.at(0).in_runs, Mean(1.4e9, 3));
}

TEST_F(CostModelFileTest, KnowsThisMachine) {
  EXPECT_FALSE(ThisMachine().cpu.empty());
  EXPECT_GE(ThisMachine().cpus, 1u);
  EXPECT_EQ(ThisMachine(), ThisMachine());
}

// Sets a variable of the environment, or removes it, for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ~Environment() { Set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void Set(const char* value) { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(CacheFolderTest, FollowsTheStandardForCaches) {
  const Environment home("HOME", "/home/ada");
  {
    const Environment cache("XDG_CACHE_HOME", "/var/fast");
    EXPECT_EQ(CacheFolder(), "/var/fast/troupe");
  }
  for (const char* no_path : {static_cast<const char*>(nullptr), "", "relative/path"}) {
    const Environment cache("XDG_CACHE_HOME", no_path);
    EXPECT_EQ(CacheFolder(), "/home/ada/.cache/troupe");
  }
  const Environment cache("XDG_CACHE_HOME", nullptr), no_home("HOME", nullptr);
  EXPECT_EQ(CacheFolder(), "");
}

}  // namespace
}  // namespace troupe
