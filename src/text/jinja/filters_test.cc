#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Filters, TextFilters) {
  ExpectValues({
      {"s|upper", "HELLO WORLD"},
      {"s|lower", "hello world"},
      {"'a-b (c) d\\'e'|title", "A-B (C) D'e"},
      {"u|capitalize", "Grüße, école ß\n日本 🎈"},
      {"w|trim", "two  words"},
      {"'xax'|trim('x')", "a"},
      {"s|replace('l', 'L')", "HeLLo WorLd"},
      {"s|replace('l', 'L', 1)", "HeLlo World"},
      {"5|replace(5, 6)", "6"},
      {"none|upper", "NONE"},
      {"nope|upper|length", "0"},
      {"'<a&\\'\">'|e", "&lt;a&amp;&#39;&#34;&gt;"},
      {"'<b>'|escape|escape", "&lt;b&gt;"},
      {"'<'|safe + '<'", "<&lt;"},
      {"'<'|e + '<'", "&lt;&lt;"},
      {"'<' ~ ('<'|safe)", "<<"},
      {"s|center(21)", "     Hello World     "},
      {"'%s-%s'|format(1, 'a')", "1-a"},
      {"1|string + \"x\"", "1x"},
  });
}

TEST(Filters, IndentLeavesTheFirstAndEmptyLines) {
  ExpectValues({
      {"'a\\nb\\n\\nc'|indent", "a\n    b\n\n    c"},
      {"'a\\nb\\n\\nc'|indent(2, true)", "  a\n  b\n\n  c"},
      {"'a\\n\\nb'|indent(1, blank=true)", "a\n \n b"},
      {"'a\\nb'|indent('> ')", "a\n> b"},
      {"'a\\n'|indent(2)", "a\n"},
      {"''|indent", ""},
      {"'a\\r\\nb'|indent", "a\n    b"},
  });
}

TEST(Filters, JoinPrintsItsItems) {
  ExpectValues({
      {"a|join", "312"},
      {"a|join(', ')", "3, 1, 2"},
      {"mix|join('|')", "1|a|None|True|2.0|[1]|{'k': 1}"},
      {"r|join(',', attribute='role')", "user,Assistant,tool"},
      {"s|join('-')", "H-e-l-l-o- -W-o-r-l-d"},
      {"[]|join", ""},
      {"nope|join", ""},
      {"d|join(',')", "a,b,c,items,k y"},
      {"[1, 2]|join(0)", "102"},
  });
}

TEST(Filters, Numbers) {
  ExpectValues({
      {"'12'|int", "12"},
      {"' -7 '|int", "-7"},
      {"'x'|int", "0"},
      {"'x'|int(9)", "9"},
      {"'1.9'|int", "1"},
      {"'ff'|int(base=16)", "255"},
      {"'0x1F'|int(0, 16)", "31"},
      {"2.9|int", "2"},
      {"-2.9|int", "-2"},
      {"true|int", "1"},
      {"none|int(3)", "3"},
      {"'1_000'|int", "1000"},
      {"'1.5'|float", "1.5"},
      {"'x'|float", "0.0"},
      {"'x'|float(2.5)", "2.5"},
      {"'1e3'|float", "1000.0"},
      {"'inf'|float", "inf"},
      {"5|float", "5.0"},
      {"-5|abs", "5"},
      {"-2.5|abs", "2.5"},
      {"2.5|round", "2.0"},
      {"3.5|round", "4.0"},
      {"2.675|round(2)", "2.67"},
      {"5|round", "5"},
      {"1.25|round(1, 'ceil')", "1.3"},
      {"1.25|round(1, 'floor')", "1.2"},
      {"-1.5|round", "-2.0"},
      {"[1, 2.5]|sum", "3.5"},
      {"[]|sum", "0"},
      {"r|sum(attribute='n')", "5"},
      {"[1]|sum(start=5)", "6"},
      {"s|length", "11"},
      {"u|count", "19"},
      {"d|length", "5"},
      {"range(7)|length", "7"},
  });
}

TEST(Filters, ListFilters) {
  ExpectValues({
      {"a|first", "3"},
      {"a|last", "2"},
      {"[]|first", ""},
      {"s|first", "H"},
      {"d|first", "a"},
      {"d|last", "k y"},
      {"range(3)|list", "[0, 1, 2]"},
      {"s|list|length", "11"},
      {"d|list", "['a', 'b', 'c', 'items', 'k y']"},
      {"nope|list", "[]"},
      {"a|reverse|list", "[2, 1, 3]"},
      {"s|reverse", "dlroW olleH"},
      {"u|reverse", "🎈 本日\nß ELOCÉ ,eßürG"},
      {"d|items|list", "[('a', 1), ('b', 'two'), ('c', None), ('items', 'own'), ('k y', [1, 2])]"},
      {"nope|items|list", "[]"},
      {"none|default('x')", "None"},
      {"nope|default('x')", "x"},
      {"e|default('x', true)", "x"},
      {"nope|d", ""},
      {"[1, 2, 3]|batch(2)|list", "[[1, 2], [3]]"},
      {"[1, 2, 3]|batch(2, 'x')|list", "[[1, 2], [3, 'x']]"},
      {"s|attr('nope')", ""},
      {"d|attr('a')", ""},
  });
}

TEST(Filters, Ordering) {
  ExpectValues({
      {"a|sort", "[1, 2, 3]"},
      {"a|sort(reverse=true)", "[3, 2, 1]"},
      {"c|sort", "['A', 'a', 'b', 'c']"},
      {"c|sort(case_sensitive=true)", "['A', 'a', 'b', 'c']"},
      {"r|sort(attribute='role')|map(attribute='role')|list", "['Assistant', 'tool', 'user']"},
      {"r|sort(attribute='n,role')|map(attribute='role')|list", "['Assistant', 'tool', 'user']"},
      {"c|unique|list", "['b', 'A', 'c']"},
      {"[1, 1.0, true, 2]|unique|list", "[1, 2]"},
      {"c|min", "A"},
      {"c|max", "c"},
      {"[]|max", ""},
      {"a|max", "3"},
      {"r|min(attribute='n')", "{'role': 'Assistant', 'n': 1}"},
      {"{'b': 1, 'A': 2}|dictsort", "[('A', 2), ('b', 1)]"},
      {"{'b': 1, 'A': 2}|dictsort(true)", "[('A', 2), ('b', 1)]"},
      {"{'b': 1, 'A': 2}|dictsort(by='value', reverse=true)", "[('A', 2), ('b', 1)]"},
      {"r|groupby('n')|length", "2"},
      {"r|groupby('p.q', default='-')|map('first')|list", "['-', 'y', 'z']"},
  });
}

TEST(Filters, MapAndSelect) {
  ExpectValues({
      {"c|map('upper')|list", "['B', 'A', 'C', 'A']"},
      {"r|map(attribute='role')|join(',')", "user,Assistant,tool"},
      {"r|map(attribute='p.q', default='-')|list", "['z', '-', 'y']"},
      {"r|map(attribute='nope')|list", "[Undefined, Undefined, Undefined]"},
      {"mix|select('string')|list", "['a']"},
      {"mix|reject('none')|list", "[1, 'a', True, 2.0, [1], {'k': 1}]"},
      {"[0, 1, '']|select|list", "[1]"},
      {"[0, 1, '']|reject|list", "[0, '']"},
      {"r|selectattr('p')|list|length", "2"},
      {"r|selectattr('role', 'equalto', 'user')|list|length", "1"},
      {"r|rejectattr('n', 'eq', 2)|map(attribute='role')|list", "['Assistant']"},
      {"[1, 5]|select('gt', 2)|first", "5"},
      {"[1, 2]|map('string')|map('length')|sum", "2"},
      {"none|map('upper')|list", "[]"},
      {"a|map('default', 1)|list", "[3, 1, 2]"},
  });
}

TEST(Filters, WhatTheyCannotTakeFails) {
  ExpectFailures({
      "{{ n|length }}",
      "{{ none|length }}",
      "{{ nope|int }}",
      "{{ nope|abs }}",
      "{{ s|abs }}",
      "{{ [1, 'a']|sort }}",
      "{{ ['a']|sum }}",
      "{{ n|list }}",
      "{{ a|dictsort }}",
      "{{ d|tojson|nope }}",
      "{{ n|first }}",
      "{{ (a|map(\"string\"))|last }}",
      "{{ (a|map(\"string\"))|length }}",
      "{{ a|map|list }}",
      "{{ a|map('nope')|list }}",
      "{{ 5|indent }}",
      "{{ s|round }}",
      "{{ a|join(1, 2, 3) }}",
      "{{ s|upper(1) }}",
      "{{ [[1]]|unique|list }}",
      "{{ 1|items|list }}",
  });
}

TEST(Filters, AGeneratorGivesItsItemsOnce) {
  ExpectValues({
      {"(a|map('string')) is sequence", "False"},
      {"(a|map('string')) is iterable", "True"},
  });
}

}  // namespace
}  // namespace troupe::jinja
