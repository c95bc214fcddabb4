#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Printing, ScalarsPrintAsInPython) {
  ExpectValues({
      {"none", "None"},
      {"true", "True"},
      {"false", "False"},
      {"1", "1"},
      {"-5", "-5"},
      {"1.0", "1.0"},
      {"0.1", "0.1"},
      {"1e16", "1e+16"},
      {"123456789012345.0", "123456789012345.0"},
      {"1e15", "1000000000000000.0"},
      {"1e-5", "1e-05"},
      {"0.0001", "0.0001"},
      {"-0.0", "-0.0"},
      {"2.5", "2.5"},
      {"nope", ""},
      {"3.14159", "3.14159"},
      {"1e300", "1e+300"},
      {"5e-324", "5e-324"},
  });
}

TEST(Printing, ContainersPrintTheirItemsAsRepr) {
  ExpectValues({
      {"[]", "[]"},
      {"{}", "{}"},
      {"()", "()"},
      {"(1,)", "(1,)"},
      {"[1, \"a\", none, true, 1.5]", "[1, 'a', None, True, 1.5]"},
      {"{\"a\": [1, {\"b\": 2}]}", "{'a': [1, {'b': 2}]}"},
      {"{1: 2, none: 3}", "{1: 2, None: 3}"},
      {"[nope]", "[Undefined]"},
      {"range(3)", "range(0, 3)"},
      {"range(0, 6, 2)", "range(0, 6, 2)"},
      {"range(0)", "range(0, 0)"},
      {"d.keys()", "dict_keys(['a', 'b', 'c', 'items', 'k y'])"},
      {"d.values()", "dict_values([1, 'two', None, 'own', [1, 2]])"},
      {"d.items()",
       "dict_items([('a', 1), ('b', 'two'), ('c', None), ('items', 'own'), ('k y', [1, 2])])"},
  });
}

TEST(Printing, QuotesAreChosenAndEscaped) {
  ExpectValues({
      {"['it\\'s']", "[\"it's\"]"},
      {"['say \"x\"']", "['say \"x\"']"},
      {"['both \\' \"']", "['both \\' \"']"},
      {"['a\\\\b']", "['a\\\\b']"},
      {"['\\n\\r\\t']", "['\\n\\r\\t']"},
      {"['\\x00\\x1f\\x7f']", "['\\x00\\x1f\\x7f']"},
      {"['é日🎈']", "['é日🎈']"},
      {"['\\u00a0\\u00ad\\u3000\\u2028']", "['\\xa0\\xad\\u3000\\u2028']"},
  });
}

}  // namespace
}  // namespace troupe::jinja
