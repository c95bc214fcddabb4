#include "gguf/quoted.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Quoted, LeavesOrdinaryNamesAlone) {
  EXPECT_EQ(Quoted("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(Quoted(""), "''");
}

TEST(Quoted, KeepsAnyBytesOnOneUnambiguousLine) {
  EXPECT_EQ(Quoted(std::string_view("a\n\x1b[2J\0'\\\xc3", 10)),
            "'a\\x0a\\x1b[2J\\x00\\x27\\x5c\\xc3'");
}

TEST(Quoted, CutsWhatIsTooLong) {
  EXPECT_EQ(Quoted(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(81, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace troupe
