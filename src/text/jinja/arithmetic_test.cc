#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Arithmetic, WholeNumbersDivideDownAsInPython) {
  ExpectValues({
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"7 // -2", "-4"},
      {"7 % -2", "-1"},
      {"-7 % 2", "1"},
      {"7 / 2", "3.5"},
      {"6 / 2", "3.0"},
      {"0 % 5", "0"},
      {"n * m", "-21"},
      {"2 ** 10", "1024"},
      {"2 ** -1", "0.5"},
      {"0 ** 0", "1"},
      {"-n", "-7"},
      {"+t", "1"},
      {"true + true", "2"},
  });
}

TEST(Arithmetic, FloatsFollowPython) {
  ExpectValues({
      {"2.5 // 1", "2.0"},
      {"-2.5 // 1", "-3.0"},
      {"-2.5 % 2", "1.5"},
      {"2.5 % -2", "-1.5"},
      {"1.5 + 1", "2.5"},
      {"f * 2", "5.0"},
      {"0.1 + 0.2", "0.30000000000000004"},
      {"1 / 3", "0.3333333333333333"},
      {"f ** 2", "6.25"},
      {"-0.0", "-0.0"},
      {"7.0 // 2", "3.0"},
  });
}

TEST(Arithmetic, StringsAndListsAddAndRepeat) {
  ExpectValues({
      {"'a' + 'b'", "ab"},
      {"s + u", "Hello WorldGrüße, ÉCOLE ß\n日本 🎈"},
      {"'ab' * 2", "abab"},
      {"2 * 'ab'", "abab"},
      {"'ab' * -1", ""},
      {"[1] + [2]", "[1, 2]"},
      {"[1, 2] * 2", "[1, 2, 1, 2]"},
      {"(1, 2) + (3, 4)", "(1, 2, 3, 4)"},
      {"[] * 5", "[]"},
  });
}

TEST(Arithmetic, TildeJoinsWhatPrints) {
  ExpectValues({
      {"1 ~ 'a' ~ none ~ true ~ 1.5", "1aNoneTrue1.5"},
      {"[1] ~ {}", "[1]{}"},
      {"nope ~ 'x'", "x"},
  });
}

TEST(Arithmetic, PercentFormatsAString) {
  ExpectValues({
      {"'%s and %s' % ('a', 1)", "a and 1"},
      {"'%d' % 3.9", "3"},
      {"'%05d|%-5d|%5s' % (7, 7, 'x')", "00007|7    |    x"},
      {"'%.2f' % 1.005", "1.00"},
      {"'%r' % s", "'Hello World'"},
      {"'100%%' % ()", "100%"},
      {"'%.3s' % u", "Grü"},
  });
}

TEST(Arithmetic, OperatorsBindAsInPython) {
  ExpectValues({
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"2 ** 3 ** 2", "64"},
      {"-2 ** 2", "4"},
      {"-n|abs", "7"},
      {"1 - -1", "2"},
      {"10 - 3 - 2", "5"},
      {"1 ~ 2 ~ 'a'", "12a"},
      {"not n == 7", "False"},
      {"1 < 2 < 3", "True"},
      {"1 < 3 < 2", "False"},
      {"1 if t else 2 if x else 3", "1"},
  });
}

TEST(Arithmetic, KindsThatDoNotMixFail) {
  ExpectFailures({
      "{{ 1 + 'a' }}",
      "{{ 'a' + 1 }}",
      "{{ [1] + (1,) }}",
      "{{ none + 1 }}",
      "{{ nope + 1 }}",
      "{{ d + d }}",
      "{{ 1 / 0 }}",
      "{{ 1 // 0 }}",
      "{{ 1 % 0 }}",
      "{{ 'a' - 'b' }}",
      "{{ -s }}",
      "{{ -none }}",
      "{{ 'a' * 1.5 }}",
      "{{ '%d' % 'x' }}",
      "{{ '%s' % (1, 2) }}",
      "{{ '%s %s' % 'x' }}",
      "{{ 0 ** -1 }}",
      "{{ k(1) }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
