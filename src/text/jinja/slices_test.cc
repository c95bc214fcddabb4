#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Slices, IndexesCountFromBothEnds) {
  ExpectValues({
      {"a[0]", "3"},
      {"a[-1]", "2"},
      {"a[5]", ""},
      {"a[-5]", ""},
      {"u[1]", "r"},
      {"u[-1]", "🎈"},
      {"u[99]", ""},
      {"range(5)[2]", "2"},
      {"(1, 2)[1]", "2"},
      {"a.0", "3"},
      {"d['a']", "1"},
      {"d['zz']", ""},
      {"d.a", "1"},
      {"d.nope", ""},
      {"{1: 2}[1]", "2"},
      {"[1][true]", ""},
  });
}

TEST(Slices, SlicesFollowPython) {
  ExpectValues({
      {"s[1:4]", "ell"},
      {"s[:-1]", "Hello Worl"},
      {"s[::-1]", "dlroW olleH"},
      {"s[::2]", "HloWrd"},
      {"u[2:5]", "üße"},
      {"u[-3:]", "本 🎈"},
      {"s[5:1:-2]", " l"},
      {"s[9:2]", ""},
      {"a[1:]", "[1, 2]"},
      {"a[::-1]", "[2, 1, 3]"},
      {"a[5:]", "[]"},
      {"range(10)[2:8:3]|list", "[2, 5]"},
      {"(1, 2, 3)[:2]", "(1, 2)"},
      {"s[none:3]", "Hel"},
      {"s[true:]", "ello World"},
      {"e[1:]", ""},
      {"s[-100:100]", "Hello World"},
      {"a[::100]", "[3]"},
  });
}

TEST(Slices, AttributesAreMethodsFirstAndItemsFirstInBrackets) {
  ExpectValues({
      {"d['items']", "own"},
      {"d['k y']", "[1, 2]"},
      {"d.items()|length", "5"},
      {"(d['items'])|upper", "OWN"},
      {"r[0]['p']['q']", "z"},
      {"r[0].p.q", "z"},
      {"r[0].nope", ""},
      {"s.nope", ""},
      {"n.nope", ""},
  });
}

TEST(Slices, WhatIsUndefinedHasNothing) {
  ExpectFailures({
      "{{ nope.a }}",
      "{{ nope[0] }}",
      "{{ d.nope.a }}",
      "{{ r[0].nope.more }}",
      "{{ nope() }}",
      "{{ s[::0] }}",
      "{{ s['a':] }}",
      "{{ n[1:] }}",
      "{{ d[1:] }}",
      "{{ nope[1:] }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
