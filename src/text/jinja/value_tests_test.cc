#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(ValueTests, Kinds) {
  ExpectValues({
      {"n is defined", "True"},     {"f is defined", "True"},      {"t is defined", "True"},
      {"s is defined", "True"},     {"none is defined", "True"},   {"a is defined", "True"},
      {"d is defined", "True"},     {"nope is defined", "False"},  {"n is none", "False"},
      {"f is none", "False"},       {"t is none", "False"},        {"s is none", "False"},
      {"none is none", "True"},     {"a is none", "False"},        {"d is none", "False"},
      {"nope is none", "False"},    {"n is string", "False"},      {"f is string", "False"},
      {"t is string", "False"},     {"s is string", "True"},       {"none is string", "False"},
      {"a is string", "False"},     {"d is string", "False"},      {"nope is string", "False"},
      {"n is number", "True"},      {"f is number", "True"},       {"t is number", "True"},
      {"s is number", "False"},     {"none is number", "False"},   {"a is number", "False"},
      {"d is number", "False"},     {"nope is number", "False"},   {"n is integer", "True"},
      {"f is integer", "False"},    {"t is integer", "False"},     {"s is integer", "False"},
      {"none is integer", "False"}, {"a is integer", "False"},     {"d is integer", "False"},
      {"nope is integer", "False"}, {"n is float", "False"},       {"f is float", "True"},
      {"t is float", "False"},      {"s is float", "False"},       {"none is float", "False"},
      {"a is float", "False"},      {"d is float", "False"},       {"nope is float", "False"},
      {"n is boolean", "False"},    {"f is boolean", "False"},     {"t is boolean", "True"},
      {"s is boolean", "False"},    {"none is boolean", "False"},  {"a is boolean", "False"},
      {"d is boolean", "False"},    {"nope is boolean", "False"},  {"n is mapping", "False"},
      {"f is mapping", "False"},    {"t is mapping", "False"},     {"s is mapping", "False"},
      {"none is mapping", "False"}, {"a is mapping", "False"},     {"d is mapping", "True"},
      {"nope is mapping", "False"}, {"n is sequence", "False"},    {"f is sequence", "False"},
      {"t is sequence", "False"},   {"s is sequence", "True"},     {"none is sequence", "False"},
      {"a is sequence", "True"},    {"d is sequence", "True"},     {"nope is sequence", "True"},
      {"n is iterable", "False"},   {"f is iterable", "False"},    {"t is iterable", "False"},
      {"s is iterable", "True"},    {"none is iterable", "False"}, {"a is iterable", "True"},
      {"d is iterable", "True"},    {"nope is iterable", "True"},
  });
}

TEST(ValueTests, Others) {
  ExpectValues({
      {"range is callable", "True"},
      {"s is callable", "False"},
      {"true is true", "True"},
      {"1 is true", "False"},
      {"false is false", "True"},
      {"3 is odd", "True"},
      {"4 is even", "True"},
      {"-3 is odd", "True"},
      {"6 is divisibleby 3", "True"},
      {"7 is divisibleby(2)", "False"},
      {"1 is in [1]", "True"},
      {"'e' is in s", "True"},
      {"7 is eq 7", "True"},
      {"s is equalto s", "True"},
      {"1 is ne 2", "True"},
      {"1 is lt 2", "True"},
      {"2 is gt 1", "True"},
      {"2 is ge 2", "True"},
      {"3 is le 2", "False"},
      {"1 is lessthan 2", "True"},
      {"none is sameas none", "True"},
      {"true is sameas true", "True"},
      {"1 is sameas true", "False"},
      {"'AB' is upper", "True"},
      {"'ab' is lower", "True"},
      {"s is not none", "True"},
      {"nope is not defined", "True"},
      {"'upper' is filter", "True"},
      {"'nope' is filter", "False"},
      {"'odd' is test", "True"},
      {"n is number and s is string", "True"},
      {"not n is string", "True"},
      {"n is not in [1, 2]", "True"},
      {"s is escaped", "False"},
  });
}

TEST(ValueTests, WrongOperandsFail) {
  ExpectFailures({
      "{{ 'a' is odd }}",
      "{{ none is even }}",
      "{{ 1 is divisibleby 0 }}",
      "{{ 1 is in 1 }}",
      "{{ 1 is lt 'a' }}",
      "{{ 1 is eq }}",
      "{{ n is nope }}",
      "{{ n is odd is even }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
