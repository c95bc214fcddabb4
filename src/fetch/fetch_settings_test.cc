#include "fetch/fetch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class FetchSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) {
      const char* const value = std::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::unsetenv(name);
    }
    Set("HOME", folder_.path().string());
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  static void Set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  TempFolder folder_;

 private:
  static constexpr const char* kNames[] = {"HF_ENDPOINT",   "HF_TOKEN",      "HF_TOKEN_PATH",
                                           "HF_HOME",       "TROUPE_MODELS", "OLLAMA_REGISTRY",
                                           "XDG_DATA_HOME", "HOME"};
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(FetchSettingsTest, ModelsLieWhereXdgSaysOrTroupeModels) {
  EXPECT_EQ(ModelFolder(), folder_.PathOf(".local/share/troupe/models"));
  Set("XDG_DATA_HOME", "/data");
  EXPECT_EQ(ModelFolder(), "/data/troupe/models");
  Set("TROUPE_MODELS", "/srv/models");
  EXPECT_EQ(ModelFolder(), "/srv/models");
}

TEST_F(FetchSettingsTest, WithoutAnyFolderThereIsAnError) {
  ::unsetenv("HOME");
  EXPECT_EQ(ModelFolder(), "");
  EXPECT_FALSE(ReadFetchSettings().ok());
}

TEST_F(FetchSettingsTest, TheHubMayBeAMirror) {
  EXPECT_EQ(ReadFetchSettings()->hub, "https://huggingface.co");
  Set("HF_ENDPOINT", "https://mirror.lan/hub/");
  EXPECT_EQ(ReadFetchSettings()->hub, "https://mirror.lan/hub");
  Set("HF_ENDPOINT", "mirror.lan");
  EXPECT_THAT(ReadFetchSettings().status().message(), HasSubstr("HF_ENDPOINT: 'mirror.lan'"));
}

TEST_F(FetchSettingsTest, ATokenIsThatOfTheEnvironmentOrOfTheHubsOwnTools) {
  EXPECT_EQ(ReadFetchSettings()->token, "");
  Set("HF_TOKEN_PATH", folder_.Write("token", "hf_file\n"));
  EXPECT_EQ(ReadFetchSettings()->token, "hf_file");
  Set("HF_TOKEN", "hf_own");
  EXPECT_EQ(ReadFetchSettings()->token, "hf_own");
  Set("HF_TOKEN", "hf_own\r\nX-Evil: 1");
  EXPECT_FALSE(ReadFetchSettings().ok());
}

}  // namespace
}  // namespace troupe
