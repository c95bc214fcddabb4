#include "text/answer_parts/call_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/answer_parts/answer_parser.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

const char* const kTwoTools = R"([
  {"type": "function", "function": {"name": "find", "parameters": {"type": "object",
    "properties": {"text": {"type": "string", "maxLength": 5}, "most": {"type": "integer"}},
    "required": ["text"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "stop"}}])";

const char* const kTemplates[] = {"<think></think><tool_call>",
                                  "<tool_call><function=x><parameter=y>",
                                  "<tool_call><arg_key>",
                                  "<think></think><｜tool▁calls▁begin｜>",
                                  "<｜tool▁calls▁begin｜>```json",
                                  "[TOOL_CALLS] [ARGS]",
                                  "[TOOL_CALLS]",
                                  "<|tool_call|>",
                                  "<|channel|><|message|>",
                                  "<function=",
                                  "<tool_calls>[",
                                  "<|tool_calls_section_begin|>",
                                  "<minimax:tool_call>",
                                  "<|start_header_id|>ipython<|end_header_id|>\"parameters\""};

std::shared_ptr<const ToolSet> ToolsOf(const char* json = kTwoTools) {
  return std::make_shared<ToolSet>(ToolSet::Of(*Json::Parse(json)).value());
}

Matcher MatcherOf(const char* style, const CallRules& rules, const char* tools = kTwoTools) {
  const Grammar grammar = CallGrammar(RecogniseAnswerStyle(style), *ToolsOf(tools), rules).value();
  EXPECT_TRUE(Validate(grammar).ok());
  // As a request carries it.
  return Matcher(Automaton::Compile(ParseGbnf(ToString(grammar)).value()).value());
}

bool Fits(const char* style, const CallRules& rules, std::string_view text) {
  Matcher matcher = MatcherOf(style, rules);
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

constexpr const char* kWithReasoning = "<think></think><tool_call>";

TEST(CallGrammar, AnAnswerIsFreeUntilItCalls) {
  const auto call = [](std::string arguments) {
    return "<tool_call>\n{\"name\": \"find\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  EXPECT_TRUE(Fits(kWithReasoning, {}, "No call."));
  EXPECT_TRUE(
      Fits(kWithReasoning, {}, "Yes: " + call(R"({"text": "a"})") + call(R"({"text": "b"})")));
  EXPECT_FALSE(Fits(kWithReasoning, {}, call(R"({"most": 1})")));
  EXPECT_FALSE(Fits(kWithReasoning, {}, call(R"({"text": "far too long"})")));
  EXPECT_FALSE(Fits(kWithReasoning, {}, "<tool_call>\n{\"name\": \"other\""));
  EXPECT_FALSE(Fits(kWithReasoning, {.parallel = false}, call(R"({"text": "a"})") + " and"));
}

TEST(CallGrammar, ACallThatIsAskedForComesAtOnceOrAfterReasoning) {
  const CallRules must = {.must_call = true, .only = "stop"};
  EXPECT_FALSE(Fits(kWithReasoning, must, "No call."));
  EXPECT_FALSE(Fits(kWithReasoning, must, ""));
  EXPECT_TRUE(
      Fits(kWithReasoning, must, R"(<tool_call>{"name":"stop","arguments":{}}</tool_call>)"));
  EXPECT_TRUE(Fits(kWithReasoning, must,
                   "<think>Hm.</think>\n\n"
                   R"(<tool_call>{"name":"stop","arguments":{}}</tool_call>)"));
  EXPECT_FALSE(Fits(kWithReasoning, must, R"(<tool_call>{"name":"find")"));
  EXPECT_TRUE(Fits(kWithReasoning, {.must_call = true, .starts_in_reasoning = true},
                   R"(Hm.</think><tool_call>{"name":"stop","arguments":{}}</tool_call>)"));
  EXPECT_EQ(CallGrammar(RecogniseAnswerStyle(kWithReasoning), *ToolsOf(), {.only = "none"})
                .status()
                .code(),
            Code::kInvalidArgument);
}

TEST(CallGrammar, ACallWithoutMarksIsFollowedWhereTheAnswerBeginsWithIt) {
  constexpr const char* kBare =
      "<think></think><|start_header_id|>ipython<|end_header_id|>\"parameters\"";
  const std::string call = R"({"name": "find", "parameters": {"text": "a"}})";
  for (const std::string& text :
       {std::string(), std::string("No call."), call, "<|python_tag|>" + call, "I call " + call,
        std::string(R"({"name": "Ann", "age": 5})"), std::string(R"({"name": "fi)")}) {
    EXPECT_TRUE(Fits(kBare, {}, text)) << text;
  }
  EXPECT_FALSE(Fits(kBare, {}, R"({"name": "find", "age": 5})"));
  EXPECT_FALSE(Fits(kBare, {}, R"({"name":"find","parameters":{"most":1}})"));
  EXPECT_FALSE(Fits(kBare, {}, call + " and"));
  const CallRules thinks = {.starts_in_reasoning = true};
  EXPECT_TRUE(Fits(kBare, thinks, "Hm. " + call + " hm.</think>\n\nNo."));
  EXPECT_TRUE(Fits(kBare, thinks, "Hm."));
  EXPECT_TRUE(Fits(kBare, thinks, "Hm.</think>\n\n" + call));
  EXPECT_FALSE(Fits(kBare, thinks, "Hm.</think>\n\n" + call + "."));
  const CallRules must = {.must_call = true, .only = "stop"};
  EXPECT_TRUE(Fits(kBare, must, R"({"name": "stop", "parameters": {}})"));
  EXPECT_FALSE(Fits(kBare, must, call));
  EXPECT_FALSE(Fits(kBare, must, "No."));
}

TEST(CallGrammar, ValuesBetweenTagsAreAllOfTheirTextWhereTheStyleSaysSo) {
  const std::string begin = "<minimax:tool_call>\n<invoke name=\"find\">\n";
  const std::string end = "</invoke>\n</minimax:tool_call>";
  EXPECT_TRUE(Fits("<minimax:tool_call>", {.must_call = true},
                   begin + "<parameter name=\"text\">\na\n</parameter>\n" + end));
  EXPECT_TRUE(Fits("<minimax:tool_call>", {.must_call = true},
                   begin +
                       "<parameter name=\"text\">a</parameter>\n<parameter name=\"most\">5"
                       "</parameter>\n" +
                       end));
  EXPECT_FALSE(Fits("<minimax:tool_call>", {.must_call = true}, begin + end));
  constexpr const char* kPaint = R"([{"type": "function", "function": {"name": "find",
      "parameters": {"type": "object", "properties": {"colour": {"enum": ["red"]}}}}}])";
  const auto paints = [&](const std::string& colour) {
    Matcher matcher = MatcherOf("<minimax:tool_call>", {.must_call = true}, kPaint);
    return matcher.Accept(begin + "<parameter name=\"colour\">" + colour + "</parameter>\n" + end)
        .value();
  };
  EXPECT_TRUE(paints("red"));
  EXPECT_FALSE(paints("red\n"));
}

TEST(CallGrammar, AnAnswerWithoutCallsMayHaveAGrammarOfItsOwn) {
  const CallRules json = {.otherwise = JsonObjectGrammar()};
  EXPECT_TRUE(Fits(kWithReasoning, json, R"({"a": 1})"));
  EXPECT_FALSE(Fits(kWithReasoning, json, "text"));
  EXPECT_TRUE(
      Fits(kWithReasoning, json, R"(<tool_call>{"name":"stop","arguments":{}}</tool_call>)"));
  EXPECT_TRUE(Fits("<|channel|><|message|>", json,
                   "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final"
                   "<|message|>{}"));
}

TEST(CallGrammar, ASchemaThatIsNotUnderstoodIsRefusedForAStrictToolOnly) {
  const std::string begin = R"([{"type": "function", "function": {"name": "f", )";
  const std::string end = R"("parameters": {"type": "object", "not": {"required": ["x"]}}}}])";
  const ToolSet lax = *ToolsOf((begin + end).c_str());
  const ToolSet strict = *ToolsOf((begin + R"("strict": true, )" + end).c_str());
  const AnswerStyle style = RecogniseAnswerStyle(kWithReasoning);
  EXPECT_TRUE(CallGrammar(style, lax, {}).ok());
  EXPECT_THAT(CallGrammar(style, strict, {}).status().message(), testing::HasSubstr("'f'"));
}

// A text that the grammar allows, drawn byte by byte; short, as ends are taken where they may be.
std::string Drawn(Matcher matcher, Rng& rng) {
  std::string text;
  while (text.size() < 400) {
    if (matcher.IsDone().value() || (matcher.CanEnd().value() && rng.Below(2) == 0)) return text;
    const std::bitset<256> allowed = matcher.AllowedBytes().value();
    std::vector<char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (allowed[byte]) bytes.push_back(static_cast<char>(byte));
    }
    // Marks end what else would go on for ever.
    char next = bytes[rng.Below(bytes.size())];
    if (allowed['<'] && rng.Below(3) == 0) next = '<';
    if (allowed['"'] && rng.Below(3) == 0) next = '"';
    EXPECT_TRUE(matcher.Accept({&next, 1}).value());
    text += next;
  }
  return {};
}

constexpr const char* kTagged[] = {"<tool_call><function=x><parameter=y>", "<tool_call><arg_key>",
                                   "<minimax:tool_call>"};

// The arguments of what is drawn, as JSON; nothing: it found no end.
std::optional<Json> DrawnArguments(const char* chat_template, const Matcher& matcher,
                                   std::shared_ptr<const ToolSet> tools, Rng& rng) {
  const std::string text = Drawn(matcher, rng);
  if (text.empty()) return std::nullopt;
  AnswerParser parser(RecogniseAnswerStyle(chat_template), {.reads_calls = true}, std::move(tools));
  AnswerEvents events = parser.Push(text);
  for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
  std::string arguments;
  for (const AnswerEvent& event : events) {
    if (event.kind == AnswerEvent::Kind::kCall) arguments.clear();
    if (event.kind == AnswerEvent::Kind::kArguments) arguments += event.text;
  }
  const auto json = Json::Parse(arguments);
  if (json) return *json;
  ADD_FAILURE() << text;
  return std::nullopt;
}

TEST(CallGrammar, TextsBetweenTagsAreWhatTheSchemaOfAStrictToolSays) {
  constexpr const char* kStrict = R"([{"type": "function", "function": {"name": "f", "strict": true,
      "parameters": {"type": "object", "additionalProperties": false,
        "required": ["code", "word", "kind", "fixed", "day"],
        "properties": {
          "code": {"type": "string", "pattern": "^[A-Z]{2}[^0-9]?\\d+$"},
          "word": {"type": "string", "minLength": 2, "maxLength": 4},
          "kind": {"type": "string", "enum": ["one", "two"], "maxLength": 3},
          "fixed": {"type": "string", "const": "always\n"},
          "day": {"type": "string", "format": "date"}}}}}])";
  Rng rng(TestSeed());
  for (const char* chat_template : kTagged) {
    const Matcher matcher =
        MatcherOf(chat_template, {.must_call = true, .parallel = false}, kStrict);
    int read = 0;
    for (int round = 0; round < 300; ++round) {
      const auto json = DrawnArguments(chat_template, matcher, ToolsOf(kStrict), rng);
      if (!json) continue;
      const auto text = [&](const char* key) { return std::string(json->Find(key)->AsString()); };
      ASSERT_EQ(json->size(), 5u) << json->Dump();
      EXPECT_EQ(text("fixed"), "always\n");
      EXPECT_TRUE(text("kind") == "one" || text("kind") == "two") << json->Dump();
      EXPECT_THAT(text("day"), testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+"));
      const std::string code = text("code"), word = text("word");
      EXPECT_TRUE(code.size() >= 3 && code[0] >= 'A' && code[1] <= 'Z' && code.back() >= '0' &&
                  code.back() <= '9')
          << code;
      const auto characters =
          std::ranges::count_if(word, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_TRUE(characters >= 2 && characters <= 4) << word;
      ++read;
    }
    EXPECT_GT(read, 30) << chat_template;
  }
}

TEST(CallGrammar, ArgumentsBetweenTagsMayBeAskedForThroughReferences) {
  constexpr const char* kIndirect = R"([{"type": "function", "function": {"name": "f",
      "parameters": {"$ref": "#/$defs/all", "$defs": {
        "count": {"type": "integer", "minimum": 5, "maximum": 7},
        "all": {"type": "object", "allOf": [
          {"properties": {"a": {"$ref": "#/$defs/count"}}, "required": ["a"]},
          {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}}}}}])";
  Rng rng(TestSeed());
  for (const char* chat_template : kTagged) {
    const Matcher matcher =
        MatcherOf(chat_template, {.must_call = true, .parallel = false}, kIndirect);
    int read = 0;
    for (int round = 0; round < 50; ++round) {
      const auto json = DrawnArguments(chat_template, matcher, ToolsOf(kIndirect), rng);
      if (!json) continue;
      ASSERT_EQ(json->size(), 2u) << json->Dump();
      EXPECT_TRUE(json->Find("b")->IsBool());
      EXPECT_GE(json->Find("a")->AsDouble(), 5);
      EXPECT_LE(json->Find("a")->AsDouble(), 7);
      ++read;
    }
    EXPECT_GT(read, 10) << chat_template;
  }
}

TEST(CallGrammar, WhatTextsBetweenTagsCannotKeepToIsRefusedForAStrictToolOnly) {
  for (const char* schema :
       {R"({"type":"string","pattern":"^a","maxLength":5})",
        R"({"type":"string","pattern":"^<a>$"})", R"({"type":"string","enum":["a"],"pattern":"a"})",
        R"({"type":"string","not":{}})"}) {
    const auto tools = [&](const char* strict) {
      return ToolsOf((std::string(R"([{"type":"function","function":{"name":"f",)") + strict +
                      R"("parameters":{"type":"object","properties":{"x":)" + schema + "}}}}]")
                         .c_str());
    };
    for (const char* chat_template : kTagged) {
      const AnswerStyle style = RecogniseAnswerStyle(chat_template);
      EXPECT_TRUE(CallGrammar(style, *tools(""), {}).ok()) << schema;
      EXPECT_THAT(CallGrammar(style, *tools(R"("strict":true,)"), {}).status().message(),
                  testing::StartsWith("tools: 'f': "))
          << schema;
    }
  }
}

TEST(CallGrammar, WhatItForcesIsReadAsCallsOfEachSyntax) {
  Rng rng(TestSeed());
  for (const char* chat_template : kTemplates) {
    const AnswerStyle style = RecogniseAnswerStyle(chat_template);
    ASSERT_NE(style.calls.syntax, CallSyntax::kNone);
    const CallRules rules = {.must_call = true};
    const Matcher matcher = MatcherOf(chat_template, rules);
    int read = 0;
    for (int round = 0; round < 300; ++round) {
      const std::string text = Drawn(matcher, rng);
      if (text.empty()) continue;
      AnswerParser parser(style, {.reads_calls = true}, ToolsOf());
      AnswerEvents events = parser.Push(text);
      for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
      std::string name, arguments;
      for (const AnswerEvent& event : events) {
        ASSERT_NE(event.kind, AnswerEvent::Kind::kContent) << chat_template << "\n" << text;
        if (event.kind == AnswerEvent::Kind::kCall) {
          name = event.text;
          arguments.clear();
        }
        if (event.kind == AnswerEvent::Kind::kArguments) arguments += event.text;
      }
      ASSERT_TRUE(name == "find" || name == "stop") << text;
      const auto json = Json::Parse(arguments);
      ASSERT_TRUE(json && json->IsObject()) << text;
      ASSERT_TRUE(name != "find" || json->Find("text")->IsString()) << text;
      ++read;
    }
    EXPECT_GT(read, 30) << chat_template;
  }
}

}  // namespace
}  // namespace troupe
