#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Lexer, ATagTakesTheBlanksBeforeItAndTheLineEndBehindIt) {
  ExpectTexts({
      {"a\n  {% if t %}\nb\n  {% endif %}\nc", "a\nb\nc"},
      {"a {% if t %} b {% endif %} c", "a  b  c"},
      {"  {% if t %}x{% endif %}", "x"},
      {"a\n  {{ n }}\nb", "a\n  7\nb"},
      {"{% if t %}\n\nx{% endif %}", "\nx"},
      {"a\n {# note #}\nb", "a\nb"},
      {"x {# note #}\nb", "x b"},
      {" {% set v = 1 %} {% set v = 2 %}\nx", " x"},
      {"\t{%+ if t %}x{% endif +%}\ny", "\tx\ny"},
      {"{% if t +%}\nx{% endif %}", "\nx"},
  });
}

TEST(Lexer, AMinusTakesAllBlanks) {
  ExpectTexts({
      {"a \n\n {%- if t -%} \n b \n {%- endif -%} \n c", "abc"},
      {"a {{- n -}} b", "a7b"},
      {"a {#- note -#} b", "ab"},
      {"\302\240{{- n }}", "7"},
      {"a\n{{- n -}}\n\n b", "a7b"},
  });
}

TEST(Lexer, LineEndsAreOneKindAndTheLastOneGoes) {
  ExpectTexts({
      {"a\r\nb\rc\n", "a\nb\nc"},
      {"a\n\n", "a\n"},
      {"\n", ""},
      {"", ""},
      {"a\r\n", "a"},
      {"{{ \"x\r\ny\" }}", "x\ny"},
  });
}

TEST(Lexer, RawBlocksAreText) {
  ExpectTexts({
      {"{% raw %}{{ n }} {% if %}{% endraw %}!", "{{ n }} {% if %}!"},
      {"a\n {% raw %}\n x {{ y }}\n {% endraw %}\nb", "a\n\n x {{ y }}\nb"},
      {"{%- raw -%} x {%- endraw -%} y", "xy"},
  });
}

TEST(Lexer, StringsHaveEscapes) {
  ExpectTexts({
      {"{{ \"a\\n\\t\\\\\\\"\\'b\" }}", "a\n\t\\\"'b"},
      {"{{ \"\\x41\\u00e9\\U0001F388\\101\" }}", "Aé🎈A"},
      {"{{ \"\\q\\d\" }}", "\\q\\d"},
      {"{{ 'a' 'b' \"c\" }}", "abc"},
      {"{{ \"{{ }} {% %}\" }}", "{{ }} {% %}"},
      {"{{ \"a\\\nb\" }}", "ab"},
  });
}

TEST(Lexer, NumbersHaveUnderscoresAndExponents) {
  ExpectTexts({
      {"{{ 1_000 }}", "1000"},
      {"{{ 1.5e3 }}", "1500.0"},
      {"{{ 2E-2 }}", "0.02"},
      {"{{ 00 }}", "0"},
      {"{{ 1e3 }}", "1000.0"},
      {"{{ a.0 }}", "3"},
      {"{{ 1.0.real if false else 2 }}", "2"},
  });
}

TEST(Lexer, BracketsHideTheEndOfATag) {
  ExpectTexts({
      {"{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"},
      {"{% set v = {'a': {}} %}{{ v }}", "{'a': {}}"},
      {"{{ [{}] }}", "[{}]"},
  });
}

TEST(Lexer, WhatIsNoTokenFails) {
  ExpectFailures({
      "{{ n",
      "{% if t %",
      "{{ \"a }}",
      "{# note",
      "{% raw %} x",
      "{{ ) }}",
      "{{ (] }}",
      "{{ $ }}",
      "{{ 0123 }}",
      "{{ n ? 1 }}",
      "{{ \"\\x4\" }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
