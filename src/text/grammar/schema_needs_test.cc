#include "text/grammar/schema_needs.h"

#include <gtest/gtest.h>

#include <string>

#include "text/grammar/schema_overlap.h"

namespace troupe {
namespace {

struct ReadSchema {
  explicit ReadSchema(std::string_view text) : json(Json::Parse(text).value()), reader(json) {}

  std::vector<SchemaNeeds> Needs() { return reader.Read({&json}).value(); }
  SchemaNeeds OnlyNeeds() {
    auto needs = Needs();
    EXPECT_EQ(needs.size(), 1U);
    return needs.at(0);
  }

  Json json;
  SchemaReader reader;
};

TEST(SchemaNeeds, JoinTheBoundsOfAllThatMustHold) {
  ReadSchema schema(R"({"type": ["integer", "string"], "minimum": 3, "minLength": 2, "allOf": [
      {"type": "number", "minimum": 3, "exclusiveMinimum": 3, "maximum": 10},
      {"maximum": 9, "minLength": 1, "maxLength": 8}, {"maxLength": 12}]})");
  const SchemaNeeds needs = schema.OnlyNeeds();
  EXPECT_EQ(needs.types, unsigned{kJsonInteger});
  EXPECT_EQ(needs.least->value, (Decimal{false, "3", ""}));
  EXPECT_TRUE(needs.least->is_exclusive);
  EXPECT_EQ(needs.most->value, (Decimal{false, "9", ""}));
  EXPECT_EQ(needs.least_length, 2U);
  EXPECT_EQ(needs.most_length, 8U);
}

TEST(SchemaNeeds, SpreadOutEachChoiceAndDropWhatNothingSatisfies) {
  ReadSchema schema(R"({"type": ["string", "null"], "anyOf": [
      {"type": "string"}, {"type": "null"}, {"type": "integer"}, false, true]})");
  std::vector<unsigned> types;
  for (const SchemaNeeds& needs : schema.Needs()) types.push_back(needs.types);
  EXPECT_EQ(types, (std::vector<unsigned>{kJsonString, kJsonNull, kJsonString | kJsonNull}));
}

TEST(SchemaNeeds, ValuesAreThoseThatAllListsHave) {
  ReadSchema schema(R"({"enum": [1, "a", null], "allOf": [{"enum": ["a", 1, 2]}, {"const": 1}]})");
  EXPECT_EQ(schema.OnlyNeeds().values, (std::vector<Json>{Json(1)}));
}

TEST(SchemaNeeds, APropertySatisfiesEachPartThatSpeaksOfIt) {
  ReadSchema schema(
      R"({"properties": {"a": {"minimum": 1}, "b": true}, "required": ["z", "a"], "allOf": [
      {"properties": {"a": {"maximum": 2}}, "additionalProperties": {"type": "null"}}]})");
  const SchemaNeeds needs = schema.OnlyNeeds();
  EXPECT_EQ(needs.PropertyNames(), (std::vector<std::string>{"a", "b", "z"}));
  EXPECT_TRUE(needs.Requires("z") && needs.Requires("a") && !needs.Requires("b"));
  EXPECT_EQ(needs.SchemasOf("a").size(), 2U);
  EXPECT_EQ(needs.SchemasOf("b").size(), 2U);  // true, and that it is null
  EXPECT_EQ(needs.SchemasOf("z").size(), 1U);
  EXPECT_EQ(needs.AdditionalSchemas()->size(), 1U);
}

TEST(SchemaNeeds, ObjectsAreClosedUnlessTheySayOtherwise) {
  EXPECT_FALSE(ReadSchema(R"({"properties": {"a": true}})").OnlyNeeds().AdditionalSchemas());
  EXPECT_FALSE(ReadSchema(R"({"additionalProperties": false})").OnlyNeeds().AdditionalSchemas());
  EXPECT_TRUE(ReadSchema("{}").OnlyNeeds().AdditionalSchemas());
  EXPECT_TRUE(ReadSchema(R"({"properties": {"a": true}, "additionalProperties": true})")
                  .OnlyNeeds()
                  .AdditionalSchemas());
}

TEST(SchemaPointers, NameAPlaceAndLeadBackToIt) {
  const Json json = Json::Parse(R"({"a/b": [{"~": {}}, true]})").value();
  const Json& inner = *(*json.Find("a/b"))[0].Find("~");
  EXPECT_EQ(PointerTo(json, inner), "#/a~1b/0/~0");
  EXPECT_EQ(FollowReference(json, "#/a~1b/0/~0").value(), &inner);
  EXPECT_EQ(FollowReference(json, "#").value(), &json);
  for (const char* nowhere :
       {"", "a", "#a", "#/a", "#/a~1b", "#/a~1b/2", "#/a~1b/x", "#/a~1b/0/~0/"}) {
    EXPECT_FALSE(FollowReference(json, nowhere).ok()) << nowhere;
  }
}

bool AreApart(std::string_view a, std::string_view b) {
  ReadSchema both(fmt::format("[{}, {}]", a, b));
  const SchemaNeeds one = both.reader.Read({&both.json[0]}).value().at(0);
  const SchemaNeeds other = both.reader.Read({&both.json[1]}).value().at(0);
  const bool apart = AreDisjoint(one, other, both.reader).value();
  EXPECT_EQ(apart, AreDisjoint(other, one, both.reader).value());
  return apart;
}

TEST(SchemaOverlap, TypesValuesAndBoundsTellSchemasApart) {
  EXPECT_TRUE(AreApart(R"({"type": "string"})", R"({"type": "null"})"));
  EXPECT_FALSE(AreApart(R"({"type": "number"})", R"({"type": "integer"})"));
  EXPECT_TRUE(AreApart(R"({"enum": ["a", "b"]})", R"({"enum": ["c", 1]})"));
  EXPECT_FALSE(AreApart(R"({"enum": ["a", 1.0]})", R"({"enum": ["c", 1]})"));
  EXPECT_FALSE(AreApart(R"({"const": {"a": 1, "b": 2}})", R"({"const": {"b": 2, "a": 1}})"));
  EXPECT_TRUE(AreApart(R"({"const": "a"})", R"({"type": "integer"})"));
  EXPECT_FALSE(AreApart(R"({"const": "a"})", R"({"type": "string", "maxLength": 0})"));
  EXPECT_TRUE(AreApart(R"({"type": "number", "maximum": 1})",
                       R"({"type": "number", "exclusiveMinimum": 1})"));
  EXPECT_FALSE(
      AreApart(R"({"type": "number", "maximum": 1})", R"({"type": "number", "minimum": 1})"));
  EXPECT_FALSE(AreApart(R"({"type": "array"})", R"({"type": "array", "minItems": 1})"));
}

TEST(SchemaOverlap, PropertiesTellObjectsApartInBothDirections) {
  const auto closed = [](std::string_view name) {
    return fmt::format(R"({{"type": "object", "properties": {{"{}": true}}, "required": ["{}"],
                            "additionalProperties": false}})",
                       name, name);
  };
  EXPECT_TRUE(AreApart(closed("a"), closed("b")));
  EXPECT_FALSE(AreApart(closed("a"), closed("a")));
  const auto tagged = [](std::string_view tag) {
    return fmt::format(R"({{"type": "object", "properties": {{"kind": {{"const": "{}"}}}},
                            "required": ["kind"]}})",
                       tag);
  };
  EXPECT_TRUE(AreApart(tagged("circle"), tagged("line")));
  // An object of the second may satisfy the first, which does not say what else there may be.
  EXPECT_FALSE(AreApart(R"({"type": "object", "properties": {"a": true}})", closed("a")));
}

}  // namespace
}  // namespace troupe
