#include "base/json_pointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

std::string After(std::string_view json, std::string_view pointer) {
  Json value = Json::Parse(json).value();
  const Status status = SetAt(value, pointer, "new");
  return status.ok() ? value.Dump() : status.message();
}

TEST(JsonPointer, ReplacesAndAdds) {
  EXPECT_EQ(After(R"({"a":[{"b":1},2]})", "/a/0/b"), R"({"a":[{"b":"new"},2]})");
  EXPECT_EQ(After(R"({"a":1})", "/b"), R"({"a":1,"b":"new"})");
  EXPECT_EQ(After(R"({"a":1})", "/b/c"), R"({"a":1,"b":{"c":"new"}})");
  EXPECT_EQ(After(R"({"a":null})", "/a/b"), R"({"a":{"b":"new"}})");
  EXPECT_EQ(After(R"({"a":1})", ""), "\"new\"");
  EXPECT_EQ(After("{}", "/"), R"({"":"new"})");
}

TEST(JsonPointer, AnArrayGrowsByOne) {
  EXPECT_EQ(After("[1]", "/-"), R"([1,"new"])");
  EXPECT_EQ(After("[1]", "/1"), R"([1,"new"])");
  EXPECT_EQ(After(R"({"a":null})", "/a/0"), R"({"a":["new"]})");
  EXPECT_EQ(After("[1]", "/2"), "'2': no element of 1");
  EXPECT_EQ(After("[1]", "/00"), "'00': no element of 1");
  EXPECT_EQ(After("[1]", "/99999999999999999999"), "'99999999999999999999': no element of 1");
  EXPECT_EQ(After("[1]", "/name"), "'name': no element of 1");
}

TEST(JsonPointer, KeysMayHoldSlashesAndTildes) {
  EXPECT_EQ(After("{}", "/a~1b~0c"), R"({"a/b~c":"new"})");
  EXPECT_THAT(After("{}", "/a~2"), HasSubstr("'a~2': after '~'"));
  EXPECT_THAT(After("{}", "/a~"), HasSubstr("after '~'"));
}

TEST(JsonPointer, NamesThePartThatLeadsNowhere) {
  EXPECT_EQ(After(R"({"a":5})", "/a/b"), "'b': within 5, expected an object or an array");
  EXPECT_EQ(After(R"({"a":5})", "a"), "'a', expected '/' and a name");
}

}  // namespace
}  // namespace troupe
