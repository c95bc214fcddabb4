#include "troupe/serve_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "troupe/option_table.h"
#include "troupe/serve_flags.h"

namespace troupe {
namespace {

using testing::ElementsAre;

const FileOptions kBefore = {
    {"model", {"a.gguf"}}, {"queue", {"8"}}, {"cors", {"https://a", "https://b"}}};

ServeChanges After(const std::string& name, std::vector<std::string> values) {
  FileOptions after = kBefore;
  after[name] = std::move(values);
  return ChangesBetween(kBefore, after);
}

TEST(ServeChangesTest, ThereAreNoneWhereNothingIsWrittenOtherwise) {
  const ServeChanges changes = ChangesBetween(kBefore, kBefore);
  EXPECT_EQ(changes, ServeChanges());
  EXPECT_EQ(changes.Text(), "nothing");
}

TEST(ServeChangesTest, AnOptionIsChangedAddedOrRemoved) {
  EXPECT_THAT(After("queue", {"9"}).names, ElementsAre("queue"));
  EXPECT_THAT(After("cors", {"https://a"}).names, ElementsAre("cors"));
  EXPECT_THAT(After("drain-s", {"5"}).names, ElementsAre("drain-s"));
  const ServeChanges removed = ChangesBetween(kBefore, {{"model", {"a.gguf"}}});
  EXPECT_THAT(removed.names, ElementsAre("cors", "queue"));
  EXPECT_EQ(removed.Text(), "cors, queue");
  EXPECT_TRUE(removed.Has("queue"));
  EXPECT_FALSE(removed.Has("model"));
}

TEST(ServeChangesTest, KeysLogsLimitsAndSamplingNeedNoNewModel) {
  for (const char* name :
       {"api-keys", "access-log", "log-format", "queue", "drain-s", "pass-ms", "tokens",
        "temperature", "seed", "name", "cors", "allow-host", "tls-certificate", "tls-key"}) {
    EXPECT_FALSE(After(name, {"other"}).needs_model) << name;
  }
}

TEST(ServeChangesTest, WhateverElseThereIsNeedsOne) {
  for (const char* name : {"model", "memory", "ctx", "parallel", "threads", "prefix-file",
                           "no-prefix-cache", "quality", "an-option-of-later"}) {
    EXPECT_TRUE(After(name, {"other"}).needs_model) << name;
  }
}

TEST(ServeChangesTest, EveryNameIsAnOptionOfTheServer) {
  ServeFlags flags;
  Options options("serve");
  flags.AddTo(options);
  for (const std::string& name : OptionsWithoutModel()) {
    EXPECT_NE(options.Find("--" + name), nullptr) << name;
  }
}

}  // namespace
}  // namespace troupe
