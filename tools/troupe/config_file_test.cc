#include "troupe/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<ConfigLine> Lines(std::string_view text) {
  return ParseConfig("a.conf", text).value().lines;
}
std::string Mistake(std::string_view text) {
  return ParseConfig("a.conf", text).status().message();
}

TEST(ConfigFile, HasANameAndAValueOnEachLine) {
  EXPECT_THAT(
      Lines("model = /srv/a model.gguf\nmemory=6GiB\n\tno-prefix-cache =  true  \n"),
      ElementsAre(ConfigLine{1, "model", "/srv/a model.gguf"}, ConfigLine{2, "memory", "6GiB"},
                  ConfigLine{3, "no-prefix-cache", "true"}));
}

TEST(ConfigFile, MayBeEmpty) {
  EXPECT_THAT(Lines(""), IsEmpty());
  EXPECT_THAT(Lines("\n \n# nothing\n"), IsEmpty());
}

TEST(ConfigFile, CommentsBeginALineOrFollowABlank) {
  EXPECT_THAT(Lines("# all\n  # of it\nname = a#b # c = d\nmemory = 1G\t#2G"),
              ElementsAre(ConfigLine{3, "name", "a#b"}, ConfigLine{4, "memory", "1G"}));
}

TEST(ConfigFile, AValueMayHaveEqualsSigns) {
  EXPECT_THAT(Lines("logit-bias = 306=-inf"), ElementsAre(ConfigLine{1, "logit-bias", "306=-inf"}));
}

TEST(ConfigFile, LinesOfOtherSystemsAreLines) {
  EXPECT_THAT(Lines("port = 1\r\n\r\nqueue = 2\r\n"),
              ElementsAre(ConfigLine{1, "port", "1"}, ConfigLine{3, "queue", "2"}));
}

TEST(ConfigFile, MistakesNameTheirLine) {
  EXPECT_EQ(Mistake("# a\n\nmemory 6GiB"),
            "a.conf: line 3: found 'memory 6GiB', expected NAME = VALUE");
  EXPECT_EQ(Mistake("--memory = 6GiB"),
            "a.conf: line 1: found '--memory', expected an option's long name without its dashes");
  EXPECT_EQ(Mistake(" = 6GiB"),
            "a.conf: line 1: found '', expected an option's long name without its dashes");
  EXPECT_EQ(Mistake("port = 1\nmemory = # 6GiB"), "a.conf: line 2: memory has no value");
  EXPECT_EQ(Mistake(std::string_view("name = a\0b", 10)),
            "a.conf: line 1: name has a byte of zero");
}

TEST(ConfigFile, AMistakeFoundLaterIsToldInTheSameWay) {
  const Config config{.path = "b.conf", .lines = {}};
  const Status status = AtLine(config, 7, Error(Code::kNotFound, "no such thing"));
  EXPECT_EQ(status.message(), "b.conf: line 7: no such thing");
  EXPECT_EQ(status.code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
