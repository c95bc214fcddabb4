#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace troupe {
namespace {

Result<int> HalfOf(int n) {
  if (n % 2 != 0) return InvalidArgument("{} is odd", n);
  return n / 2;
}

Result<int> QuarterOf(int n) {
  TROUPE_ASSIGN_OR_RETURN(const int half, HalfOf(n));
  TROUPE_ASSIGN_OR_RETURN(const int quarter, HalfOf(half));
  return quarter;
}

Status CheckEven(int n) {
  TROUPE_RETURN_IF_ERROR(HalfOf(n).status());
  return OkStatus();
}

TEST(Status, DefaultIsSuccess) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "ok");
}

TEST(Status, CarriesCodeAndMessage) {
  const Status s = Error(Code::kNotFound, "{}: no tensor '{}'", "m.gguf", "x");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_EQ(s.message(), "m.gguf: no tensor 'x'");
  EXPECT_EQ(s.ToString(), "not found: m.gguf: no tensor 'x'");
}

TEST(Status, EachLayerAddsItsContextInFront) {
  EXPECT_EQ(InvalidArgument("bad rank").WithContext("m.gguf").message(), "m.gguf: bad rank");
  EXPECT_TRUE(OkStatus().WithContext("m.gguf").ok());
}

TEST(Status, AContextThatIsFullIsToldByAFlagThatEachLayerPassesOn) {
  const Status full = ContextFull("{} tokens", 9).WithContext("input[2]");
  EXPECT_TRUE(full.context_full());
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_EQ(full.message(), "input[2]: 9 tokens");
  EXPECT_FALSE(Error(Code::kResourceExhausted, "no room in the context").context_full());
}

TEST(Status, ErrnoKeepsItsMeaning) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "a").code(), Code::kNotFound);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "a").code(), Code::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EACCES, "a").message(), "a: Permission denied");
}

TEST(Result, MacrosPassValuesAndErrorsOn) {
  EXPECT_EQ(QuarterOf(12).value(), 3);
  EXPECT_EQ(QuarterOf(6).status().message(), "3 is odd");
  EXPECT_TRUE(CheckEven(4).ok());
  EXPECT_EQ(CheckEven(3).message(), "3 is odd");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(7);
  EXPECT_EQ(*std::move(r).value(), 7);
}

TEST(ResultDeathTest, TakingTheValueOfAnErrorIsABugAndSaysWhich) {
  const Result<int> r = HalfOf(3);
  EXPECT_DEATH((void)r.value(), "3 is odd");
}

}  // namespace
}  // namespace troupe
