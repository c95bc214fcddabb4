#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Compare, NumbersAreEqualAcrossTheirKinds) {
  ExpectValues({
      {"1 == 1.0", "True"},
      {"true == 1", "True"},
      {"0 == false", "True"},
      {"1 != 2", "True"},
      {"none == none", "True"},
      {"none == false", "False"},
      {"nope == nope", "True"},
      {"nope == none", "False"},
      {"'1' == 1", "False"},
      {"'a' == 'a'", "True"},
      {"[1, 2] == [1, 2]", "True"},
      {"[1] == (1,)", "False"},
      {"{\"a\": 1} == {\"a\": 1.0}", "True"},
      {"{\"a\": 1} == {\"b\": 1}", "False"},
      {"range(2) == range(2)", "True"},
  });
}

TEST(Compare, OrderIsThatOfPython) {
  ExpectValues({
      {"1 < 2", "True"},
      {"2 <= 2", "True"},
      {"1.5 > 1", "True"},
      {"true < 2", "True"},
      {"'a' < 'b'", "True"},
      {"'B' < 'a'", "True"},
      {"'é' > 'z'", "True"},
      {"[1, 2] < [1, 3]", "True"},
      {"[1] < [1, 0]", "True"},
      {"(1, 'a') < (1, 'b')", "True"},
      {"[] < [1]", "True"},
      {"big > n", "True"},
  });
}

TEST(Compare, MembershipLooksIntoEveryContainer) {
  ExpectValues({
      {"'ell' in s", "True"},
      {"'' in e", "True"},
      {"1 in a", "True"},
      {"9 in a", "False"},
      {"9 not in a", "True"},
      {"'a' in d", "True"},
      {"1 in {1.0: 2}", "True"},
      {"none in mix", "True"},
      {"3 in range(5)", "True"},
      {"\"a\" in d.keys()", "True"},
      {"1 in d.values()", "True"},
      {"1 in nope", "False"},
      {"'two' in w.split()", "True"},
  });
}

TEST(Compare, OtherKindsHaveNoOrderAndNoMembers) {
  ExpectFailures({
      "{{ 1 < 'a' }}",
      "{{ none < 1 }}",
      "{{ nope < 1 }}",
      "{{ {} < {} }}",
      "{{ [1] < ['a'] }}",
      "{{ 1 in s }}",
      "{{ 1 in 1 }}",
      "{{ [] in {} }}",
      "{{ none in s }}",
      "{{ [1] < (1,) }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
