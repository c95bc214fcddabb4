#include "forge/repart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class RepartTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    ModelShape shape = *FindShape("tiny-olmoe");
    shape.layers = 2;
    whole_ = new std::string(Synthesize(shape, {.layout = {.mix = {.type = TensorType::kQ8_0}}},
                                        folder_->PathOf("whole.gguf"))
                                 .value()
                                 .files.front());
  }
  static void TearDownTestSuite() {
    delete whole_;
    delete folder_;
  }

  static Result<RepartReport> Write(const std::string& in, const std::string& out, Bytes part) {
    return Repart(GgufModel::Open(in).value(), folder_->PathOf(out), part);
  }

  static TempFolder* folder_;
  static std::string* whole_;
};
TempFolder* RepartTest::folder_ = nullptr;
std::string* RepartTest::whole_ = nullptr;

TEST_F(RepartTest, PartsThatAreJoinedAgainAreTheFileByteForByte) {
  const RepartReport parts = Write(*whole_, "parts.gguf", 300_KiB).value();
  ASSERT_GT(parts.files.size(), 2u);
  EXPECT_THAT(
      parts.files.front(),
      testing::EndsWith("parts-00001-of-" + fmt::format("{:05}", parts.files.size()) + ".gguf"));
  const GgufModel split = GgufModel::Open(parts.files[1]).value();  // any part opens all
  EXPECT_EQ(split.tensors().size(), GgufModel::Open(*whole_)->tensors().size());
  const RepartReport joined = Write(parts.files.front(), "joined.gguf", Bytes()).value();
  EXPECT_THAT(joined.files, testing::ElementsAre(folder_->PathOf("joined.gguf")));
  EXPECT_EQ(folder_->Read("joined.gguf"), folder_->Read("whole.gguf"));
}

TEST_F(RepartTest, PartsCanBeCutAnew) {
  const RepartReport few = Write(*whole_, "few.gguf", 700_KiB).value();
  const RepartReport more = Write(few.files.front(), "more.gguf", 200_KiB).value();
  EXPECT_GT(more.files.size(), few.files.size());
}

TEST_F(RepartTest, AModelThatFitsIntoOnePartIsOneFile) {
  EXPECT_THAT(Write(*whole_, "one.gguf", 1_GiB)->files,
              testing::ElementsAre(folder_->PathOf("one.gguf")));
}

TEST_F(RepartTest, WhatIsReadIsNotWrittenOver) {
  EXPECT_THAT(Write(*whole_, "whole.gguf", Bytes()).status().message(), HasSubstr("another name"));
  const RepartReport parts = Write(*whole_, "again.gguf", 300_KiB).value();
  EXPECT_THAT(Write(parts.files.front(), "again.gguf", 300_KiB).status().message(),
              HasSubstr("another name"));
  EXPECT_TRUE(GgufModel::Open(parts.files.back()).ok());
}

TEST_F(RepartTest, ACallerWhoStopsItLeavesNothing) {
  const auto before = folder_->Count();
  const GgufModel model = GgufModel::Open(*whole_).value();
  const auto stopped =
      Repart(model, folder_->PathOf("stopped.gguf"), 300_KiB, [](Bytes, Bytes) { return false; });
  EXPECT_EQ(stopped.status().code(), Code::kCancelled);
  EXPECT_EQ(folder_->Count(), before);
}

}  // namespace
}  // namespace troupe
