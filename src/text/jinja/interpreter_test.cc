#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Interpreter, LoopsKnowWhereTheyAre) {
  ExpectTexts({
      {"{% for i in a %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ "
       "loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
       "1032TrueFalse3 2121FalseFalse3 3210FalseTrue3 "},
      {"{% for i in a %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}",
       "<3>1 3<1>2 1<2> "},
      {"{% for i in a %}{{ loop.cycle(\"x\", \"y\") }}{% endfor %}", "xyx"},
      {"{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}", "TrueFalseTrue"},
      {"{% for i in a %}{% for j in c %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
       "123411234212343"},
      {"{% for i in a %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "101010"},
  });
}

TEST(Interpreter, LoopsTakeApartFilterAndFallThrough) {
  ExpectTexts({
      {"{% for key, v in d.items() %}{{ key }}={{ v }};{% endfor %}",
       "a=1;b=two;c=None;items=own;k y=[1, 2];"},
      {"{% for (p1, p2), p3 in [((1, 2), 3)] %}{{ p1 }}{{ p2 }}{{ p3 }}{% endfor %}", "123"},
      {"{% for i in a if i > 1 %}{{ i }}{{ loop.length }}{% endfor %}", "3222"},
      {"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in nope %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in a if i > 9 %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in \"héé\" %}{{ i }}-{% endfor %}", "h-é-é-"},
      {"{% for i in d %}{{ i }},{% endfor %}", "a,b,c,items,k y,"},
      {"{% for i in 1, 2 %}{{ i }}{% endfor %}", "12"},
      {"{% for i in a|map(\"string\") %}{{ i }}{{ loop.last }}{% endfor %}", "3False1False2True"},
  });
}

TEST(Interpreter, BreakAndContinueLeaveTheInnermostLoop) {
  ExpectTexts({
      {"{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"},
      {"{% for i in range(4) %}{% if i is odd %}{% continue %}{% endif %}{{ i }}{% endfor %}",
       "02"},
      {"{% for i in [1] %}{% continue %}{% else %}else{% endfor %}", "else"},
      {"{% for i in a %}{% for j in a %}{% break %}{% endfor %}{{ i }}{% endfor %}", "312"},
  });
}

TEST(Interpreter, WhatALoopSetsStaysInside) {
  ExpectTexts({
      {"{% set v = 1 %}{% for i in a %}{{ v }}{% set v = i %}{{ v }} {% endfor %}{{ v }}",
       "13 11 12 1"},
      {"{% set ns = namespace(v=0) %}{% for i in a %}{% set ns.v = ns.v + i %}{% endfor %}{{ ns.v "
       "}}",
       "6"},
      {"{% set ns = namespace({\"a\": 1}, b=2) %}{{ ns.a }}{{ ns[\"b\"] }}{{ ns.nope }}", "12"},
      {"{% if t %}{% set v = 5 %}{% endif %}{{ v }}", "5"},
      {"{% set v, v2 = 1, [2] %}{{ v }}{{ v2 }}", "1[2]"},
  });
}

TEST(Interpreter, ConditionsChoose) {
  ExpectTexts({
      {"{% if x %}a{% elif n > 5 %}b{% else %}c{% endif %}", "b"},
      {"{% if e %}a{% elif k %}b{% else %}c{% endif %}", "c"},
      {"{{ \"a\" if x else \"b\" }}", "b"},
      {"{{ \"a\" if x }}!", "!"},
      {"{{ n and s }}", "Hello World"},
      {"{{ z or e or \"x\" }}", "x"},
      {"{{ not k }}", "True"},
      {"{% if not x and n in [7] %}y{% endif %}", "y"},
  });
}

TEST(Interpreter, BlocksAreSetAndFiltered) {
  ExpectTexts({
      {"{% set v %}a{{ n }}b{% endset %}{{ v|upper }}", "A7B"},
      {"{% set v | upper | trim %} a{% endset %}[{{ v }}]", "[A]"},
      {"{% filter upper %}a{{ s }}{% endfilter %}", "AHELLO WORLD"},
      {"{% filter replace(\"a\", \"b\")|indent(2) %}a\na{% endfilter %}", "b\n  b"},
      {"{% with v = 1, v2 = n %}{{ v }}{{ v2 }}{% endwith %}{{ v }}", "17"},
      {"{% generation %}a{{ n }}{% endgeneration %}", "a7"},
      {"{% print n %}", "7"},
  });
}

TEST(Interpreter, MacrosTakeArguments) {
  ExpectTexts({
      {"{% macro m(p1, p2=\"d\", p3=p2) %}{{ p1 }}{{ p2 }}{{ p3 }}{% endmacro %}{{ m(1) }}|{{ m(1, "
       "2) }}|{{ m(p2=3, p1=4) }}|{{ m() }}",
       "1dd|122|433|dd"},
      {"{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, v=3) }}",
       "(1, 2){'v': 3}"},
      {"{% macro m(p1) %}{% if p1 > 0 %}{{ p1 }}{{ m(p1 - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
       "321"},
      {"{% macro m() %}{{ v }}{% endmacro %}{% set v = 1 %}{{ m() }}{% set v = 2 %}{{ m() }}",
       "12"},
      {"{% macro m(p1) %}[{{ caller(p1) }}]{% endmacro %}{% call(p2) m(5) %}<{{ p2 }}>{% endcall "
       "%}",
       "[<5>]"},
      {"{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{{ n }}{% endcall %}", "[x7]"},
      {"{% macro m(p1) %}{{ p1 }}{% endmacro %}{{ m(*[1]) }}{{ m(**{\"p1\": 2}) }}", "12"},
      {"{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "False"},
      {"{% macro m() %} x {% endmacro %}{{ m()|trim }}{{ m.name }}", "xm"},
  });
}

TEST(Interpreter, FunctionsOfEveryTemplate) {
  ExpectTexts({
      {"{{ range(3)|list }}{{ range(1, 7, 3)|list }}{{ range(3, 0, -1)|list }}{{ range(0)|list }}",
       "[0, 1, 2][1, 4][3, 2, 1][]"},
      {"{{ dict(a=1) }}{{ dict({\"a\": 1}, b=2) }}{{ dict([[\"a\", 1]]) }}",
       "{'a': 1}{'a': 1, 'b': 2}{'a': 1}"},
      {"{{ strftime_now(\"%d %b %Y %H:%M:%S %A %B %y %j %p %I %%\") }}",
       "09 Mar 2025 14:05:07 Sunday March 25 068 PM 02 %"},
      {"{{ strftime_now(\"%Y-%m-%d\") }}", "2025-03-09"},
      {"{{ dict() }}", "{}"},
  });
}

TEST(Interpreter, AConditionalFilterNeedNotBeKnown) {
  ExpectTexts({
      {"{{ \"a\" if t else s|nope }}", "a"},
      {"{% if x %}{{ s|nope }}{% endif %}ok", "ok"},
  });
}

TEST(Interpreter, MisuseFails) {
  ExpectFailures({
      "{{ raise_exception(\"no\") }}",
      "{% for i in 5 %}{% endfor %}",
      "{% for i in none %}{% endfor %}",
      "{% for p1, p2 in [1] %}{% endfor %}",
      "{% for p1, p2 in [[1]] %}{% endfor %}",
      "{% set v = 1 %}{% set v.p = 2 %}",
      "{% set nope.p = 2 %}",
      "{% macro m(p1) %}{% endmacro %}{{ m(1, 2) }}",
      "{% macro m(p1) %}{% endmacro %}{{ m(p2=1) }}",
      "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
      "{{ s() }}",
      "{{ nope() }}",
      "{{ range(1, 2, 0) }}",
      "{{ range(\"a\") }}",
      "{{ range(1000000) }}",
      "{{ dict(1) }}",
      "{{ loop.index }}",
      "{{ m(1) }}",
      "{{ dict(*5) }}",
  });
}

TEST(Parser, WhatIsNoTemplateFails) {
  ExpectFailures({
      "{% if t %}",
      "{% endif %}",
      "{% for i in a %}{% endif %}",
      "{% for in a %}{% endfor %}",
      "{% for i a %}{% endfor %}",
      "{{ }}",
      "{{ 1 + }}",
      "{{ n n }}",
      "{% nope %}",
      "{% set 1 = 2 %}",
      "{% set true = 2 %}",
      "{% break %}",
      "{% macro m( %}{% endmacro %}",
      "{% macro m(p1=1, p2) %}{% endmacro %}",
      "{{ s|nope }}",
      "{{ s is nope }}",
      "{{ s| }}",
      "{{ s[ }}",
      "{{ d. }}",
      "{{ f(p=1, 2) }}",
      "{% call 5 %}{% endcall %}",
      "{% if %}{% endif %}",
      "{% else %}",
      "{% %}",
      "{{ f(**d, 1) }}",
      "{% for i in a %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
      "{% extends \"x\" %}",
      "{% include \"x\" %}",
      "{% import \"x\" as y %}",
  });
}

}  // namespace
}  // namespace troupe::jinja
