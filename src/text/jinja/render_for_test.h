// What the tests of this folder render, with the values of tests/random_templates.py, so that texts
// expected here can be had from Python's Jinja too.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/template.h"

namespace troupe::jinja {

inline TemplateValues ValuesForTest() {
  TemplateValues values = TemplateValues::FromJson(*Json::Parse(R"({
    "s": "Hello World", "e": "", "u": "Grüße, ÉCOLE ß\n日本 🎈", "w": "  two  words\t\n",
    "l": "a,b,,c", "q": "it's \"q\" \\ <&>",
    "n": 7, "z": 0, "m": -3, "f": 2.5, "g": -0.125, "big": 1e16,
    "t": true, "x": false, "none": null,
    "a": [3, 1, 2], "c": ["b", "A", "c", "a"], "k": [],
    "mix": [1, "a", null, true, 2.0, [1], {"k": 1}],
    "d": {"a": 1, "b": "two", "c": null, "items": "own", "k y": [1, 2]}, "o": {},
    "r": [{"role": "user", "n": 2, "p": {"q": "z"}}, {"role": "Assistant", "n": 1},
          {"role": "tool", "n": 2, "p": {"q": "y"}}]})"));
  std::tm now{};
  now.tm_year = 125;
  now.tm_mon = 2;
  now.tm_mday = 9;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 7;
  now.tm_wday = 0;
  now.tm_yday = 67;
  values.now = now;
  return values;
}

inline Result<std::string> RenderForTest(std::string_view source, const RenderLimits& limits = {}) {
  TROUPE_ASSIGN_OR_RETURN(const Template parsed, Template::Parse(source));
  return parsed.Render(ValuesForTest(), limits);
}

using TextsByTemplate = std::vector<std::pair<std::string, std::string>>;

inline void ExpectTexts(const TextsByTemplate& expected) {
  for (const auto& [source, text] : expected) {
    const Result<std::string> found = RenderForTest(source);
    ASSERT_TRUE(found.ok()) << source << ": " << found.status().message();
    EXPECT_EQ(*found, text) << source;
  }
}

// Of expressions.
inline void ExpectValues(TextsByTemplate expected) {
  for (auto& [source, text] : expected) source = "{{ " + source + " }}";
  ExpectTexts(expected);
}

// Each fails, with its line.
inline void ExpectFailures(const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    const Result<std::string> found = RenderForTest(source);
    ASSERT_FALSE(found.ok()) << source << ": " << *found;
    EXPECT_EQ(found.status().message().rfind("line ", 0), 0U) << found.status().message();
  }
}

}  // namespace troupe::jinja
