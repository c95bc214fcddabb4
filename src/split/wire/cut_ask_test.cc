#include "split/wire/cut_ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Result<CutAsk> ReadCut(std::string_view text) {
  return ReadJson<CutAsk>("a cut", text, ReadCutAsk);
}

TEST(CutAsk, ComesBackAsItWas) {
  const CutAsk ask{.name = ~std::uint64_t{0},
                   .layer = 4,
                   .code = {.rank = 128, .form = StateForm::kInt4},
                   .basis = 0xfedcba9876543210,
                   .prefix = 208,
                   .process = 0x123456789abcdef0};
  EXPECT_EQ(ReadCut(Record(ask).Dump()).value(), ask);
}

TEST(CutAsk, IsRefusedWhereItCannotBeOne) {
  EXPECT_THAT(
      ReadCut(R"({"name":1,"layer":0,"rank":0,"form":"floats","basis":0,"prefix":0,"process":0})")
          .status()
          .message(),
      HasSubstr("layer"));
  EXPECT_THAT(
      ReadCut(R"({"name":1,"layer":2,"rank":0,"form":"bf16","basis":0,"prefix":0,"process":0})")
          .status()
          .message(),
      HasSubstr("floats, int8 or int4"));
  EXPECT_FALSE(ReadCut(R"({"name":1,"layer":2,"rank":0,"form":"int8"})").ok());
  const auto with_prefix = [](std::string_view prefix) {
    return ReadCut(R"({"name":1,"layer":2,"rank":0,"form":"floats","basis":0,"prefix":)" +
                   std::string(prefix) + R"(,"process":7})")
        .status()
        .message();
  };
  EXPECT_EQ(with_prefix("16"), "");
  EXPECT_THAT(with_prefix("-1"), HasSubstr("prefix"));
  EXPECT_THAT(with_prefix("1e12"), HasSubstr("prefix"));
}

TEST(StatesReceipt, ComesBackAsItWas) {
  const StatesReceipt receipt{.rows = 64, .waited_seconds = 0.25, .seconds = 0.5};
  EXPECT_EQ(DecodeStatesReceipt(Encode(receipt)).value(), receipt);
  EXPECT_FALSE(DecodeStatesReceipt(R"({"rows":-1,"waited_s":0,"seconds":0})").ok());
  EXPECT_FALSE(DecodeStatesReceipt("{}").ok());
}

}  // namespace
}  // namespace troupe
