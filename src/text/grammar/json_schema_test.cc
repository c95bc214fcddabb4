// Single rules and errors; tests/json_schema_oracle_test.py compares random schemas with another
// validator.
#include "text/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <string>

#include "text/grammar/matcher.h"

namespace troupe {
namespace {

Result<Grammar> CompileText(std::string_view schema) {
  return CompileJsonSchema(Json::Parse(schema).value());
}

std::string SchemaErrorOf(std::string_view schema) {
  const auto grammar = CompileText(schema);
  return grammar.ok() ? "no error" : std::string(grammar.status().message());
}

bool Satisfies(std::string_view schema, std::string_view text) {
  const auto grammar = CompileText(schema);
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  if (!grammar.ok()) return false;
  Matcher matcher(Automaton::Compile(*grammar).value());
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(JsonSchema, NamesInOneObjectAreLimitedAsEachIsLookedForAmongAll) {
  const auto schema = [](std::string_view keyword, int names, const char* of_each) {
    std::string list;
    for (int i = 0; i < names; ++i) {
      list += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\"" + of_each;
    }
    const bool is_list = *of_each == 0;
    return "\"" + std::string(keyword) + "\":" + (is_list ? "[" : "{") + list +
           (is_list ? "]" : "}");
  };
  EXPECT_EQ(SchemaErrorOf("{" + schema("properties", 1000, ":{\"type\":\"null\"}") + "}"),
            "no error");
  EXPECT_NE(SchemaErrorOf("{" + schema("properties", 2049, ":{}") + "}").find("2049"),
            std::string::npos);
  EXPECT_NE(SchemaErrorOf("{\"allOf\":[{" + schema("properties", 1025, ":{}") + "},{" +
                          schema("properties", 1025, ":true") + "}]}")
                .find("2050"),
            std::string::npos);
  EXPECT_NE(SchemaErrorOf("{" + schema("required", 2050, "") + "}").find("more than 2048"),
            std::string::npos);
}

TEST(JsonSchema, PropertiesComeInOrderAndOptionalOnesMayBeMissing) {
  constexpr std::string_view kSchema = R"({"type": "object", "required": ["b"], "properties": {
      "a": {"type": "integer"}, "b": {"type": "null"}, "c": {"type": "boolean"}}})";
  for (const char* text : {R"({"a":1,"b":null,"c":true})", R"({"b":null})", R"({"a":1,"b":null})",
                           R"({"b": null, "c": false})", "{\n  \"b\": null\n}"}) {
    EXPECT_TRUE(Satisfies(kSchema, text)) << text;
  }
  for (const char* text : {"{}", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"b":null})",
                           R"({"b":null,"d":1})", R"({,"b":null})", R"({"b":null,})"}) {
    EXPECT_FALSE(Satisfies(kSchema, text)) << text;
  }
}

TEST(JsonSchema, PropertiesWithoutANameComeLastAndNeverBearANameOfTheSchema) {
  constexpr std::string_view kSchema = R"({"properties": {"ab": {"type": "null"}, "a\"": true},
      "type": "object", "additionalProperties": {"type": "integer"}})";
  for (const char* text : {R"({"ab":null,"a":1,"abc":2,"":3})", R"({"x":1})", R"({"a\\":1})",
                           R"({"b\"":1})", R"({"a\"":[],"zé\n":5})", R"({"abab":1})"}) {
    EXPECT_TRUE(Satisfies(kSchema, text)) << text;
  }
  for (const char* text : {R"({"ab":1})", R"({"x":1,"ab":null})", R"({"x":1,"a\u0062":1})",
                           R"({"x":1,"a\"":1})", R"({"x":null})"}) {
    EXPECT_FALSE(Satisfies(kSchema, text)) << text;
  }
}

TEST(JsonSchema, ReferencesMayBeRecursive) {
  constexpr std::string_view kSchema = R"({"$ref": "#/$defs/a~1node", "$defs": {"a/node": {
      "type": "object", "required": ["v"], "additionalProperties": false, "properties": {
        "v": {"type": "integer", "minimum": 0, "maximum": 99},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/a~1node"}}}}}})";
  EXPECT_TRUE(Satisfies(kSchema, R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"));
  EXPECT_FALSE(Satisfies(kSchema, R"({"v":1,"kids":[{"v":100}]})"));
}

TEST(JsonSchema, AllOfJoinsWhatItsPartsSay) {
  constexpr std::string_view kSchema = R"({"allOf": [
      {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
      {"properties": {"a": {"maximum": 5}, "b": {"enum": ["x", "y", 7]}}},
      {"properties": {"b": {"type": "string"}}}]})";
  EXPECT_TRUE(Satisfies(kSchema, R"({"a":4,"b":"y"})"));
  EXPECT_FALSE(Satisfies(kSchema, R"({"a":6})"));
  EXPECT_FALSE(Satisfies(kSchema, R"({"a":4,"b":7})"));
  EXPECT_FALSE(Satisfies(kSchema, R"({"b":"x"})"));
}

TEST(JsonSchema, AnyOfAddsToWhatStandsBesideIt) {
  constexpr std::string_view kSchema = R"({"type": "object", "additionalProperties": false,
      "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
      "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  EXPECT_TRUE(Satisfies(kSchema, R"({"a":null})"));
  EXPECT_TRUE(Satisfies(kSchema, R"({"b":null})"));
  EXPECT_TRUE(Satisfies(kSchema, R"({"a":null,"b":null})"));
  EXPECT_FALSE(Satisfies(kSchema, "{}"));
}

TEST(JsonSchema, OneOfIsRefusedUnlessItsBranchesAreApart) {
  EXPECT_EQ(
      SchemaErrorOf(R"({"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})"),
      "no error");
  EXPECT_EQ(SchemaErrorOf(R"({"oneOf": [{"type": "integer", "maximum": 3},
                                        {"type": "number", "exclusiveMinimum": 3}]})"),
            "no error");
  EXPECT_EQ(SchemaErrorOf(R"({"oneOf": [
      {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]},
      {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"]}]})"),
            "no error");
  EXPECT_EQ(SchemaErrorOf(R"({"oneOf": [
      {"type": "object", "properties": {"a": true}, "required": ["a"], "additionalProperties": false},
      {"type": "object", "properties": {"b": true}, "required": ["b"], "additionalProperties": false}]})"),
            "no error");
  const std::string overlap = SchemaErrorOf(
      R"({"items": {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "number"}]}})");
  EXPECT_TRUE(overlap.starts_with(
      "schema '#/items': keyword 'oneOf': branches 1 and 2 cannot be told apart"))
      << overlap;
  // Without the name in its list of properties, the first leaves it open.
  EXPECT_NE(SchemaErrorOf(R"({"oneOf": [
      {"type": "object", "properties": {"a": true}, "required": ["a"]},
      {"type": "object", "properties": {"a": true, "b": true}, "required": ["a", "b"]}]})"),
            "no error");
}

TEST(JsonSchema, ArraysCountTheirItems) {
  constexpr std::string_view kTuple = R"({"type": "array", "prefixItems": [{"type": "integer"},
      {"type": "string"}], "items": {"type": "null"}, "minItems": 1, "maxItems": 4})";
  for (const char* text : {"[1]", R"([1,"a"])", R"([1, "a", null, null])"}) {
    EXPECT_TRUE(Satisfies(kTuple, text)) << text;
  }
  for (const char* text : {"[]", R"(["a"])", R"([1,null])", R"([1,"a",null,null,null])"}) {
    EXPECT_FALSE(Satisfies(kTuple, text)) << text;
  }
  EXPECT_TRUE(Satisfies(R"({"type": "array", "maxItems": 0})", "[]"));
  EXPECT_FALSE(Satisfies(R"({"type": "array", "maxItems": 0})", "[1]"));
  constexpr std::string_view kOld =
      R"({"type": "array", "items": [{"type": "null"}], "additionalItems": false})";
  EXPECT_TRUE(Satisfies(kOld, "[null]"));
  EXPECT_FALSE(Satisfies(kOld, "[null,null]"));
}

TEST(JsonSchema, StringsCountCharactersHoweverTheyAreWritten) {
  constexpr std::string_view kSchema = R"({"type": "string", "minLength": 2, "maxLength": 3})";
  for (const char* text : {R"("é😀")", R"("\n\u00e9\"")", R"("\ud83d\ude00a")"}) {
    EXPECT_TRUE(Satisfies(kSchema, text)) << text;
  }
  for (const char* text : {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}) {
    EXPECT_FALSE(Satisfies(kSchema, text)) << text;
  }
}

TEST(JsonSchema, DatesAreThoseOfTheCalendar) {
  constexpr std::string_view kSchema = R"({"type": "string", "format": "date"})";
  for (const char* text : {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\""}) {
    EXPECT_TRUE(Satisfies(kSchema, text)) << text;
  }
  for (const char* text :
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"0000-01-01\"", "\"2023-13-01\""}) {
    EXPECT_FALSE(Satisfies(kSchema, text)) << text;
  }
}

TEST(JsonSchema, NullableAddsNull) {
  EXPECT_TRUE(Satisfies(R"({"type": "string", "nullable": true})", "null"));
  EXPECT_FALSE(Satisfies(R"({"type": "string", "nullable": false})", "null"));
}

TEST(JsonSchema, BooleansOfDraft4MakeBoundsExclusive) {
  constexpr std::string_view kSchema =
      R"({"type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false})";
  EXPECT_FALSE(Satisfies(kSchema, "3"));
  EXPECT_TRUE(Satisfies(kSchema, "4"));
  EXPECT_TRUE(Satisfies(kSchema, "5"));
}

TEST(JsonSchema, WhatOnlyDescribesIsIgnored) {
  EXPECT_EQ(
      SchemaErrorOf(R"({"$schema": "x", "$id": "y", "title": "t", "description": "d", "default": 1,
      "examples": [1], "deprecated": true, "$comment": "c", "format": "email", "x-order": 3,
      "uniqueItems": false})"),
      "no error");
}

TEST(JsonSchema, WhatIsNotSupportedIsAnErrorThatNamesPointerAndKeyword) {
  EXPECT_EQ(SchemaErrorOf(R"({"properties": {"a/b": {"items": {"not": {}}}}})"),
            "schema '#/properties/a~1b/items': keyword 'not': is not supported");
  for (const char* keyword : {"if", "patternProperties", "propertyNames", "minProperties",
                              "contains", "uniqueItems", "multipleOf", "dependentRequired"}) {
    EXPECT_EQ(SchemaErrorOf(fmt::format("{{\"{}\": 3}}", keyword)),
              fmt::format("schema '#': keyword '{}': is not supported", keyword));
  }
  EXPECT_EQ(SchemaErrorOf(R"({"type": "text"})"),
            "schema '#': keyword 'type': expected the name of a type, or a list of them");
  EXPECT_EQ(SchemaErrorOf(R"({"$ref": "#/$defs/none"})"),
            "schema '#': keyword '$ref': '#/$defs/none' leads nowhere");
  EXPECT_EQ(SchemaErrorOf(R"({"$ref": "http://x"})"),
            "schema '#': keyword '$ref': 'http://x', expected a pointer within the schema as "
            "'#/$defs/name'");
  EXPECT_EQ(
      SchemaErrorOf(R"x({"type": "string", "pattern": "(?=a)"})x"),
      "schema '#': keyword 'pattern': pattern '(?=a)', byte 2: looking ahead or behind is not "
      "supported");
  EXPECT_EQ(
      SchemaErrorOf(R"({"type": "number", "minimum": 1e300})"),
      "schema '#': keyword 'minimum': expected a number of at most 15 digits before and after "
      "the point");
  EXPECT_EQ(
      SchemaErrorOf(R"({"pattern": "a", "minLength": 3})"),
      "schema '#': keyword 'pattern': pattern, format and a length together are not supported");
  EXPECT_EQ(SchemaErrorOf("[]"), "schema '#': expected an object, true or false");
}

TEST(JsonSchema, ASchemaThatNothingSatisfiesIsAnError) {
  EXPECT_EQ(SchemaErrorOf("false"), "schema '#': no value satisfies it");
  EXPECT_EQ(SchemaErrorOf(R"({"type": "integer", "minimum": 3, "maximum": 2})"),
            "schema '#': no value satisfies it");
  EXPECT_EQ(
      SchemaErrorOf(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})"),
      "schema '#': no value satisfies it");
  EXPECT_EQ(SchemaErrorOf(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})"),
            "schema '#': refers to itself without asking for anything");
}

TEST(JsonSchema, HostileSchemasAreRefusedInTime) {
  std::string many = R"({"allOf": [)";
  for (int i = 0; i < 12; ++i) {
    many += std::string(i > 0 ? "," : "") +
            R"({"anyOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 3}]})";
  }
  EXPECT_EQ(CompileText(many + "]}").status().code(), Code::kResourceExhausted);
  std::string deep = "true";
  for (int i = 0; i < 15; ++i) {
    deep = R"({"oneOf": [{"type": "object", "required": ["a"], "properties": {"a": )" + deep +
           R"(}}, {"type": "null"}]})";
  }
  EXPECT_TRUE(CompileText(deep).ok());
}

}  // namespace
}  // namespace troupe
