#include "troupe/config_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "troupe/option_parser.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigOptionsTest : public testing::Test {
 protected:
  ConfigOptionsTest() {
    options_.Add("-m,--model,MODEL", model_, "Model file").Type("FILE");
    options_.Add("-n,--tokens", tokens_, "Most tokens").Between(0u, 100u).Type("N");
    options_.Add("--cache", cache_, "Policy").OneOf({"lru", "arc"}).Type("POLICY");
    options_.Add("--memory", memory_, "Budget").Type("SIZE");
    options_.Add("--stop", stop_, "Stop").Type("TEXT");
    options_.AddFlag("--chat", chat_, "Chat").Excludes("--memory");
    options_.Add("--system", system_, "System message").Needs("--chat").Type("TEXT");
    options_.Add("--chain", chain_, "Chain").Answers("help", [] { return std::string(); });
  }

  // The error; empty if there is none.
  std::string Apply(std::string_view text, std::vector<std::string> arguments = {}) {
    const ParsedLine line = ParseLine(options_, std::move(arguments));
    EXPECT_EQ(line.kind, ParsedLine::Kind::kComplete) << line.text;
    return ApplyConfig(ParseConfig("a.conf", text).value(), options_, line.given).message();
  }

  std::string model_, cache_ = "lru", system_, chain_;
  std::optional<std::uint32_t> tokens_;
  std::optional<Bytes> memory_;
  std::vector<std::string> stop_ = {"before"};
  bool chat_ = false;
  Options options_{"troupe test", "Tests", "  troupe test m.gguf"};
};

TEST_F(ConfigOptionsTest, SetsTheOptionsThatTheFileNames) {
  EXPECT_EQ(Apply("model = a.gguf\ntokens = 5\nmemory = 6GiB\n"), "");
  EXPECT_EQ(model_, "a.gguf");
  EXPECT_EQ(tokens_, 5u);
  EXPECT_EQ(memory_, 6_GiB);
  EXPECT_EQ(cache_, "lru");
  EXPECT_THAT(stop_, ElementsAre("before"));
}

TEST_F(ConfigOptionsTest, TheCommandLineWins) {
  EXPECT_EQ(Apply("model = a.gguf\ntokens = 5\ncache = arc\nstop = x", {"b.gguf", "-n", "7"}), "");
  EXPECT_EQ(model_, "b.gguf");
  EXPECT_EQ(tokens_, 7u);
  EXPECT_EQ(cache_, "arc");
  EXPECT_EQ(Apply("stop = x\n", {"--stop", "y", "--cache=lru"}), "");
  EXPECT_THAT(stop_, ElementsAre("y"));
}

TEST_F(ConfigOptionsTest, AFlagIsTrueOrFalse) {
  EXPECT_EQ(Apply("chat = false\nmemory = 1G"), "");
  EXPECT_FALSE(chat_);
  EXPECT_EQ(Apply("chat = true"), "");
  EXPECT_TRUE(chat_);
  EXPECT_EQ(Apply("chat = yes"), "a.conf: line 1: chat: 'yes' found, expected true or false");
}

TEST_F(ConfigOptionsTest, OnlyOptionsOfSeveralValuesMayStandTwice) {
  EXPECT_EQ(Apply("stop = a\nstop = b,c"), "");
  EXPECT_THAT(stop_, ElementsAre("a", "b,c"));
  EXPECT_EQ(Apply("tokens = 1\n\ntokens = 2"),
            "a.conf: line 3: tokens: line 1 has a value already");
}

TEST_F(ConfigOptionsTest, AnUnknownNameIsRefusedWithTheOneThatWasMeant) {
  EXPECT_EQ(Apply("\nmemroy = 6GiB"),
            "a.conf: line 2: there is no option 'memroy'; did you mean 'memory'?");
  EXPECT_EQ(Apply("zzzzzz = 6GiB"), "a.conf: line 1: there is no option 'zzzzzz'");
  EXPECT_THAT(Apply("n = 6"), HasSubstr("there is no option 'n'"));
}

TEST_F(ConfigOptionsTest, ABadValueIsRefusedByItsLine) {
  EXPECT_EQ(Apply("tokens = 101"),
            "a.conf: line 1: tokens: '101' found, expected a number from 0 to 100");
  EXPECT_THAT(Apply("memory = much"), HasSubstr("a.conf: line 1: memory: "));
  EXPECT_EQ(Apply("cache = fifo"), "a.conf: line 1: cache: 'fifo' found, expected one of lru, arc");
  EXPECT_EQ(Apply("chain = help"),
            "a.conf: line 1: chain: 'help' is a question for the command line");
}

TEST_F(ConfigOptionsTest, WhatCannotStandTogetherIsRefused) {
  EXPECT_EQ(Apply("chat = true\nmemory = 1G"), "a.conf: line 1: chat excludes --memory");
  EXPECT_EQ(Apply("memory = 1G", {"--chat"}), "a.conf: line 1: memory excludes --chat");
  EXPECT_EQ(Apply("chat = true", {"--memory", "1G"}), "a.conf: line 1: chat excludes --memory");
  EXPECT_EQ(Apply("system = a"), "a.conf: line 1: system requires --chat");
  EXPECT_EQ(Apply("system = a", {"--chat"}), "");
}

TEST_F(ConfigOptionsTest, TheParserTellsWhichOptionsTheCommandLineGave) {
  const ParsedLine line = ParseLine(options_, {"--cache", "arc", "a.gguf"});
  EXPECT_THAT(line.given, ElementsAre(options_.Find("MODEL"), options_.Find("--cache")));
  EXPECT_THAT(ParseLine(options_, {}).given, IsEmpty());
}

}  // namespace
}  // namespace troupe
