#include "lab/logits_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LogitsFile : public testing::Test {
 protected:
  std::string path() const { return folder_.PathOf("x.logits"); }
  void WriteTwoRows() {
    LogitsWriter writer = LogitsWriter::Create(path(), 3).value();
    ASSERT_TRUE(writer.Append(5, std::vector<float>{1, 2, 3}).ok());
    ASSERT_TRUE(writer.Append(6, std::vector<float>{4, 5, 6}).ok());
    ASSERT_TRUE(writer.Finish().ok());
  }
  TempFolder folder_;
};

TEST_F(LogitsFile, GivesBackWhatWasWritten) {
  WriteTwoRows();
  const LogitsReader reader = LogitsReader::Open(path()).value();
  EXPECT_EQ(reader.vocabulary(), 3u);
  EXPECT_THAT(reader.tokens(), ElementsAre(5, 6));
  std::vector<float> row(3);
  ASSERT_TRUE(reader.Read(1, row).ok());
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
}

TEST_F(LogitsFile, DoesNotExistBeforeItIsFinished) {
  {
    LogitsWriter writer = LogitsWriter::Create(path(), 1).value();
    ASSERT_TRUE(writer.Append(0, std::vector<float>{1}).ok());
  }
  EXPECT_EQ(folder_.Count(), 0u);
}

TEST_F(LogitsFile, CutAnywhereItIsRefused) {
  WriteTwoRows();
  const std::string whole = folder_.Read("x.logits");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    folder_.Write("cut.logits", whole.substr(0, length));
    EXPECT_FALSE(LogitsReader::Open(folder_.PathOf("cut.logits")).ok()) << length;
  }
}

TEST_F(LogitsFile, WhatIsNoLogitsFileIsNamed) {
  folder_.Write("x.logits", std::string(100, 'x'));
  EXPECT_THAT(LogitsReader::Open(path()).status().message(), HasSubstr("TRPLGT01"));
  EXPECT_EQ(LogitsReader::Open(folder_.PathOf("none")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
