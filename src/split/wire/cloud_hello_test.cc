#include "split/wire/cloud_hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/edited_text.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const CloudHello kHello{.proof = {.model = {0x1234, 0xfedcba9876543210}, .arithmetic = 77},
                        .context = 4096,
                        .sequences = 4,
                        .checks_drafts = true,
                        .cut_tokens = 2048,
                        .goes_on_behind_cuts = true,
                        .load = {.under_way = 9,
                                 .to_read = 700,
                                 .answer_seconds = 0.125,
                                 .read_seconds = 1e-3,
                                 .token_seconds = 1.0 / 3}};

TEST(CloudHello, ReadsWhatItWrote) { EXPECT_EQ(DecodeCloudHello(Encode(kHello)).value(), kHello); }

TEST(CloudHello, SaysWhereItIsWrong) {
  const std::string good = Encode(kHello);
  const auto message = [&](std::string_view from, std::string_view to) {
    return DecodeCloudHello(Edited(good, from, to)).status().message();
  };
  EXPECT_THAT(message("fedcba", "fedcbG"), HasSubstr("model"));
  EXPECT_THAT(message("\"0000000000001234", "\"00001234"), HasSubstr("32 hexadecimal"));
  EXPECT_THAT(message("0.125", "-0.125"), HasSubstr("answer_s"));
  EXPECT_THAT(message("\"to_read\":700", "\"to_read\":-7"), HasSubstr("to_read"));
  EXPECT_THAT(message("\"context\":4096,", ""), HasSubstr("context"));
  EXPECT_THAT(message("\"checks_drafts\":true", "\"checks_drafts\":1"), HasSubstr("checks_drafts"));
}

TEST(ModelProof, FitsOnlyTheSameModelBytesAndVersion) {
  const ModelProof own = kHello.proof;
  EXPECT_TRUE(CheckFits(own, own, "the cloud").ok());
  ModelProof other = own;
  other.model[1] ^= 1;
  EXPECT_THAT(CheckFits(own, other, "the cloud").message(),
              HasSubstr("the cloud has another model"));
  other = own;
  other.arithmetic ^= 1;
  EXPECT_THAT(CheckFits(own, other, "the cloud").message(), HasSubstr("computes other bytes"));
  other = own;
  ++other.wire;
  EXPECT_EQ(CheckFits(own, other, "the end").code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe
