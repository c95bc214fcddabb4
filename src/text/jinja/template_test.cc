#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/jinja/json_text.h"
#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view source) {
  const Result<std::string> found = RenderForTest(source);
  EXPECT_FALSE(found.ok()) << source;
  return found.ok() ? "" : found.status().message();
}

TEST(Template, ErrorsSayTheLineWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf("a\nb{{ 1 + }}"), "line 2: found '}}', expected an expression");
  EXPECT_EQ(ErrorOf("{% for i in a %}\n\n{% endif %}"),
            "line 3: found 'endif', expected a tag that is known");
  EXPECT_EQ(ErrorOf("{% if t %}\n"), "line 1: found the end of the template, expected 'endif'");
  EXPECT_EQ(ErrorOf("x\n\n{{ tools.name }}"),
            "line 3: 'tools' is undefined, expected a value with an attribute 'name'");
  EXPECT_EQ(ErrorOf("{% macro m() %}\n{{ 1 + 'a' }}\n{% endmacro %}\n{{ m() }}"),
            "line 2: '+' between int and str");
  EXPECT_EQ(ErrorOf("{{ 'a\nb' }}\n{{ 1 / 0 }}"), "line 3: division by zero");
}

TEST(Template, RaiseExceptionBecomesAnErrorWithItsText) {
  EXPECT_EQ(ErrorOf("\n{% if t %}{{ raise_exception('Roles must alternate: ' ~ n) }}{% endif %}"),
            "line 2: Roles must alternate: 7");
}

TEST(Template, OtherTemplatesAreRefusedByName) {
  for (const char* tag : {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}",
                          "{% from 'x' import y %}", "{% block x %}{% endblock %}"}) {
    const Result<Template> parsed = Template::Parse(tag);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().code(), Code::kUnimplemented);
    EXPECT_THAT(parsed.status().message(), HasSubstr("another template"));
  }
}

TEST(Template, WithoutATimeThereIsNoClock) {
  const Template parsed = *Template::Parse("{{ strftime_now is defined }}");
  TemplateValues values;
  EXPECT_EQ(*parsed.Render(values), "False");
  values.now = std::tm{};
  EXPECT_EQ(*parsed.Render(values), "True");
}

TEST(Template, RendersAgainAndAgainTheSame) {
  const Template parsed =
      *Template::Parse("{% set ns = namespace(v=0) %}{% set ns.v = ns.v + 1 %}{{ ns.v }}");
  EXPECT_EQ(*parsed.Render({}), "1");
  EXPECT_EQ(*parsed.Render({}), "1");
}

TEST(Template, ALimitOfStepsIsExact) {
  const Template parsed = *Template::Parse("{% for i in range(10) %}x{% endfor %}");
  std::size_t least = 1;
  while (!parsed.Render({}, {.steps = least}).ok()) ++least;
  EXPECT_GT(least, 10U);
  EXPECT_LT(least, 200U);
}

// {"text", is the template's}.
std::vector<TextSegment> Segments(std::string_view source) {
  TemplateValues values;
  values.names.emplace_back("user", Value::String(MarkedText("Ab<|end|>", Origin::kOutside)));
  return Template::Parse(source)->RenderMarked(values)->Segments();
}
using Expected = std::vector<TextSegment>;

TEST(Template, KnowsWhatComesFromOutside) {
  EXPECT_EQ(Segments("<|a|>{{ user }}<|b|>"),
            (Expected{{"<|a|>", true}, {"Ab<|end|>", false}, {"<|b|>", true}}));
  EXPECT_EQ(Segments("{{ '<|a|>' + user ~ '<|b|>' }}"),
            (Expected{{"<|a|>", true}, {"Ab<|end|>", false}, {"<|b|>", true}}));
  EXPECT_EQ(Segments("{{ user|upper }}{{ user[1:3] }}{{ user|trim('A') }}"),
            (Expected{{"AB<|END|>b<b<|end|>", false}}));
  EXPECT_EQ(Segments("{{ user.split('<')|join('-') }}"),
            (Expected{{"Ab", false}, {"-", true}, {"|end|>", false}}));
  EXPECT_EQ(Segments("{{ user.replace('<|end|>', '!') }}"), (Expected{{"Ab", false}, {"!", true}}));
  EXPECT_EQ(Segments("{{ '<|a|>%s' % user }}"), (Expected{{"<|a|>", true}, {"Ab<|end|>", false}}));
}

TEST(Template, KnowsWhatComesFromOutsideThroughListsAndJson) {
  EXPECT_EQ(Segments("{{ {'k': user}|tojson }}"),
            (Expected{{"{\"k\": ", true}, {"\"Ab<|end|>\"", false}, {"}", true}}));
  EXPECT_EQ(Segments("{{ [user] }}"), (Expected{{"[", true}, {"'Ab<|end|>'", false}, {"]", true}}));
  EXPECT_EQ(Segments("{% for c in user|list %}{{ c }}{% endfor %}"),
            (Expected{{"Ab<|end|>", false}}));
  EXPECT_EQ(Segments("{% macro m(p) %}<{{ p }}>{% endmacro %}{{ m(user) }}"),
            (Expected{{"<", true}, {"Ab<|end|>", false}, {">", true}}));
  EXPECT_EQ(Segments("{% set v %}<{{ user }}>{% endset %}{{ v }}"),
            (Expected{{"<", true}, {"Ab<|end|>", false}, {">", true}}));
  EXPECT_EQ(Segments("{% set ns = namespace(v='') %}{% set ns.v = ns.v ~ user %}{{ ns.v }}"),
            (Expected{{"Ab<|end|>", false}}));
  EXPECT_EQ(Segments("{{ user|e }}{{ user|indent }}{{ user|title }}{{ user|reverse }}"),
            (Expected{{"Ab&lt;|end|&gt;Ab<|end|>Ab<|end|>>|dne|<bA", false}}));
}

TEST(FromJson, KeepsNumbersAndTheOrderOfMembers) {
  const Json json = *Json::Parse(R"({"b": 1, "a": 1.0, "c": -5, "d": 18446744073709551615})");
  TemplateValues values;
  values.names.emplace_back("v", FromJson(json, Origin::kOutside));
  EXPECT_EQ(*Template::Parse("{{ v }}")->Render(values),
            "{'b': 1, 'a': 1.0, 'c': -5, 'd': 1.8446744073709552e+19}");
}

}  // namespace
}  // namespace troupe::jinja
