#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(JsonFilter, WritesAsPythonsJsonDoes) {
  ExpectValues({
      {"d|tojson", "{\"a\": 1, \"b\": \"two\", \"c\": null, \"items\": \"own\", \"k y\": [1, 2]}"},
      {"mix|tojson", "[1, \"a\", null, true, 2.0, [1], {\"k\": 1}]"},
      {"\"a\\\"b\\\\c\\n\\t\\x01/é🎈\"|tojson", "\"a\\\"b\\\\c\\n\\t\\u0001/é🎈\""},
      {"\"é🎈\\x7f\"|tojson(ensure_ascii=true)", "\"\\u00e9\\ud83c\\udf88\\u007f\""},
      {"1.0|tojson", "1.0"},
      {"1e16|tojson", "1e+16"},
      {"none|tojson", "null"},
      {"[]|tojson", "[]"},
      {"{}|tojson", "{}"},
      {"(1, 2)|tojson", "[1, 2]"},
      {"{1: 2, none: 3, true: 4, 1.5: 5}|tojson", "{\"1\": 4, \"null\": 3, \"1.5\": 5}"},
      {"\"<'>&\"|tojson", "\"<'>&\""},
  });
}

TEST(JsonFilter, Indents) {
  ExpectValues({
      {"d|tojson(indent=2)",
       "{\n  \"a\": 1,\n  \"b\": \"two\",\n  \"c\": null,\n  \"items\": \"own\",\n  \"k y\": [\n   "
       " 1,\n    2\n  ]\n}"},
      {"[]|tojson(indent=2)", "[]"},
      {"[[], {}]|tojson(indent=4)", "[\n    [],\n    {}\n]"},
      {"[1, [2]]|tojson(indent=0)", "[\n1,\n[\n2\n]\n]"},
      {"d|tojson(separators=(\",\", \":\"))",
       "{\"a\":1,\"b\":\"two\",\"c\":null,\"items\":\"own\",\"k y\":[1,2]}"},
      {"[1, 2]|tojson(indent=1, separators=(\", \", \" : \"))", "[\n 1, \n 2\n]"},
      {"{\"b\": 1, \"a\": 2}|tojson(sort_keys=true)", "{\"a\": 2, \"b\": 1}"},
      {"[1]|tojson(indent=\"--\")", "[\n--1\n]"},
  });
}

TEST(JsonFilter, RefusesWhatJsonLacks) {
  ExpectFailures({
      "{{ nope|tojson }}",
      "{{ [nope]|tojson }}",
      "{{ range(2)|tojson }}",
      "{{ (a|map(\"string\"))|tojson }}",
      "{{ d.items()|tojson }}",
      "{{ range|tojson }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
