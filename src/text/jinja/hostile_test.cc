#include <gtest/gtest.h>

#include <string>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

std::string Repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

// Ends with an error, soon, and says where.
void ExpectExhausted(const std::string& source, const RenderLimits& limits = {}) {
  const Result<std::string> found = RenderForTest(source, limits);
  ASSERT_FALSE(found.ok()) << source.substr(0, 200);
  EXPECT_EQ(found.status().code(), Code::kResourceExhausted) << found.status().message();
}

TEST(HostileTemplate, LoopsInLoopsRunOutOfSteps) {
  std::string source;
  for (int i = 0; i < 5; ++i) source += "{% for i in range(10000) %}";
  source += "x";
  for (int i = 0; i < 5; ++i) source += "{% endfor %}";
  ExpectExhausted(source, {.steps = 100'000});
}

TEST(HostileTemplate, DoublingATextRunsOutOfBytes) {
  ExpectExhausted(
      "{% set ns = namespace(v='xxxxxxxx') %}{% for i in range(100) %}"
      "{% set ns.v = ns.v + ns.v %}{% endfor %}");
  ExpectExhausted("{{ 'x' * 10000000000 }}");
  ExpectExhausted("{{ ('x' * 10000).replace('', 'y' * 10000) }}");
  ExpectExhausted("{{ ('x' * 10000)|list|join('y' * 10000) }}");
  ExpectExhausted("{{ 'a'|center(1000000000) }}");
  ExpectExhausted("{{ ('a\n' * 100000)|indent(100000) }}");
  ExpectExhausted("{{ [1]|tojson(indent=1000000000) }}");
}

TEST(HostileTemplate, ManyTextsRunOutOfAllBytes) {
  ExpectExhausted(
      "{% set ns = namespace(v=[]) %}{% for i in range(10000) %}"
      "{% set ns.v = ns.v + ['x' * 1000000] %}{% endfor %}",
      {.made_bytes = 10'000'000});
}

TEST(HostileTemplate, DoublingAListRunsOutOfItems) {
  ExpectExhausted(
      "{% set ns = namespace(v=[1, 2]) %}{% for i in range(100) %}"
      "{% set ns.v = ns.v + ns.v %}{% endfor %}");
  ExpectExhausted("{{ [1] * 1000000000 }}");
  ExpectExhausted("{{ range(9223372036854775807)|length }}");
  ExpectExhausted("{{ range(-9223372036854775807, 9223372036854775807)|length }}");
  ExpectExhausted("{{ [1]|batch(1000000000, 1)|list }}");
}

TEST(HostileTemplate, WorkThatGrowsAsASquareIsRefusedOrQuick) {
  EXPECT_EQ(*RenderForTest("{{ ('x' * 1000000).strip('y' * 1000000 + 'x') }}"), "");
  ExpectExhausted("{{ 'a' * 500000 + 'b' in 'a' * 1000000 }}");
  ExpectExhausted("{{ ('a' * 1000000).find('a' * 500000 + 'b') }}");
  ExpectExhausted("{{ ('a' * 1000000).replace('a' * 500000 + 'b', '') }}");
  ExpectExhausted("{{ ('\\n' * 5000000).splitlines() }}");
  ExpectExhausted("{{ (',' * 5000000).split(',') }}");
  ExpectExhausted("{{ ('a ' * 5000000).split() }}");
  EXPECT_EQ(*RenderForTest("{{ '-'.join(['x' * 1000] * 10000)|length }}"), "10009999");
}

TEST(HostileTemplate, ListsInListsHaveABottom) {
  ExpectExhausted(
      "{% set ns = namespace(v=[]) %}{% for i in range(1000) %}"
      "{% set ns.v = [ns.v] %}{% endfor %}");
  ExpectExhausted(
      "{% set ns = namespace(v={}) %}{% for i in range(1000) %}"
      "{% set ns.v = {'v': ns.v} %}{% endfor %}");
}

TEST(HostileTemplate, OutputHasAnEnd) {
  ExpectExhausted("{% for i in range(1000) %}0123456789{% endfor %}", {.output_bytes = 5000});
}

TEST(HostileTemplate, MacrosThatCallThemselvesEnd) {
  ExpectExhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  ExpectExhausted(
      "{% macro m(p) %}{% call m(p) %}x{% endcall %}{{ caller() }}{% endmacro %}"
      "{% call m(1) %}{% endcall %}");
  ExpectExhausted("{% macro m(p=m()) %}{% endmacro %}{{ m() }}");
}

TEST(HostileTemplate, DeepNestingIsRefusedWhenItIsRead) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("{1:", "}")}) {
    ExpectExhausted("{{ " + Repeated(open, 100'000) + "1" + Repeated(close, 100'000) + " }}");
  }
  ExpectExhausted("{{ " + Repeated("not ", 100'000) + "1 }}");
  ExpectExhausted("{{ " + Repeated("-", 100'000) + "1 }}");
  ExpectExhausted("{{ 1" + Repeated(" + 1", 100'000) + " }}");
  ExpectExhausted("{{ s" + Repeated("|upper", 100'000) + " }}");
  ExpectExhausted("{{ s" + Repeated(".a", 100'000) + " }}");
  ExpectExhausted("{{ s" + Repeated("()", 100'000) + " }}");
  ExpectExhausted("{{ 1" + Repeated(" if 1 else 1", 100'000) + " }}");
  ExpectExhausted(Repeated("{% if t %}", 100'000) + Repeated("{% endif %}", 100'000));
  ExpectExhausted("{% for " + Repeated("(", 100'000) + "a" + Repeated(")", 100'000) +
                  " in b %}{% endfor %}");
}

TEST(HostileTemplate, LongListsAndChainsOfElifAreNotDeep) {
  EXPECT_TRUE(RenderForTest("{{ [1" + Repeated(", 1", 10'000) + "]|length }}").ok());
  EXPECT_TRUE(RenderForTest("{% if x %}" + Repeated("{% elif x %}", 10'000) + "{% endif %}").ok());
  EXPECT_TRUE(RenderForTest("{{ ''" + Repeated(" ~ 'x'", 10'000) + " }}").ok());
}

TEST(HostileTemplate, AValueThatHoldsItselfNeitherPrintsNorLeaks) {
  ExpectExhausted("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}");
  EXPECT_TRUE(
      RenderForTest("{% set ns = namespace() %}{% set ns.self = [ns] %}{{ ns == ns }}").ok());
  EXPECT_TRUE(RenderForTest("{% for i in a %}{{ loop.changed(loop) }}{% endfor %}").ok());
  EXPECT_TRUE(RenderForTest("{% set ns = namespace() %}{% macro m() %}{% endmacro %}"
                            "{% set ns.m = m %}{{ ns.m() }}")
                  .ok());
}

TEST(HostileTemplate, ALoopThatHasEndedKeepsItsLastItem) {
  EXPECT_EQ(*RenderForTest("{% set ns = namespace() %}{% for i in a %}{% set ns.v = loop %}"
                           "{% endfor %}{{ ns.v.index }}{{ ns.v.last }}[{{ ns.v.nextitem }}]"),
            "3True[]");
}

TEST(HostileTemplate, NumbersThatDoNotFitFail) {
  ExpectFailures({"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
                  "{{ 9223372036854775807 * 2 }}", "{{ 2 ** 64 }}", "{{ 99999999999999999999 }}",
                  "{{ -(-9223372036854775807 - 1) }}", "{{ (-9223372036854775807 - 1) // -1 }}",
                  "{{ 1e300|int }}", "{{ 10.0 ** 400 }}"});
}

TEST(HostileTemplate, SlicesOfAnyBoundsAreSafe) {
  for (const char* bounds : {"9223372036854775807:", ":-9223372036854775807",
                             "::9223372036854775807", "::-9223372036854775807",
                             "-9223372036854775807:9223372036854775807:-9223372036854775807"}) {
    for (const char* of : {"s", "a", "range(3)"}) {
      EXPECT_TRUE(RenderForTest(fmt::format("{{{{ {}[{}] }}}}", of, bounds)).ok()) << bounds;
    }
  }
}

TEST(HostileTemplate, BytesThatAreNoUtf8AreKept) {
  const std::string odd = "\xFF\xC3(\xE2\x82";
  EXPECT_EQ(*RenderForTest(odd), odd);
  for (const char* change : {"upper", "title", "trim", "reverse|list|length", "tojson", "list",
                             "indent", "e", "string", "center(20)"}) {
    const Result<std::string> found = RenderForTest("{{ '" + odd + "'|" + change + " }}");
    EXPECT_TRUE(found.ok()) << change;
  }
  EXPECT_TRUE(RenderForTest("{{ '" + odd + "'.split() }}{{ '" + odd + "'[1:2] }}").ok());
}

TEST(HostileTemplate, APromptOfUsersCannotRunAsATemplate) {
  EXPECT_EQ(*RenderForTest("{{ '{{ 7 * 7 }}{% if t %}' }}"), "{{ 7 * 7 }}{% if t %}");
}

}  // namespace
}  // namespace troupe::jinja
