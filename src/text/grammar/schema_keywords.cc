// The keywords of one schema, one by one. Those that combine schemas are schema_needs.cc's.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "text/grammar/schema_needs.h"
#include "text/grammar/schema_pointer.h"

namespace troupe {
namespace {

// Names in one object, of properties and of those that are required: each is looked for among all.
constexpr std::size_t kMostNames = 2048;
// Pairs of values of two enums.
constexpr std::size_t kMostCompared = 1 << 22;

constexpr auto kTypeNames = std::to_array<std::pair<std::string_view, unsigned>>({
    {"null", kJsonNull},
    {"boolean", kJsonBoolean},
    {"object", kJsonObject},
    {"array", kJsonArray},
    {"string", kJsonString},
    {"integer", kJsonInteger},
    {"number", kJsonInteger | kJsonFraction},
});

constexpr auto kKnownFormats =
    std::to_array<std::string_view>({"date", "time", "date-time", "uuid"});

// Keywords that decide what is valid and that are not supported.
constexpr auto kRefused = std::to_array<std::string_view>({"not",
                                                           "if",
                                                           "then",
                                                           "else",
                                                           "patternProperties",
                                                           "propertyNames",
                                                           "minProperties",
                                                           "maxProperties",
                                                           "dependentRequired",
                                                           "dependentSchemas",
                                                           "dependencies",
                                                           "contains",
                                                           "minContains",
                                                           "maxContains",
                                                           "uniqueItems",
                                                           "multipleOf",
                                                           "unevaluatedItems",
                                                           "unevaluatedProperties",
                                                           "$dynamicRef",
                                                           "$recursiveRef"});

bool AsksNothing(std::string_view keyword, const Json& value) {
  if (keyword == "uniqueItems") return value == Json(false);
  if (keyword == "minProperties") return value == Json(0);
  if (keyword == "patternProperties") return value.IsObject() && value.size() == 0;
  if (keyword == "unevaluatedItems" || keyword == "unevaluatedProperties") {
    return value == Json(true);
  }
  return false;
}

std::optional<unsigned> TypeNamed(const Json& name) {
  if (!name.IsString()) return std::nullopt;
  for (const auto& [known, type] : kTypeNames) {
    if (known == name.AsString()) return type;
  }
  return std::nullopt;
}

std::optional<unsigned> ReadTypes(const Json& value) {
  if (!value.IsArray()) return TypeNamed(value);
  unsigned types = 0;
  for (const Json& item : value.items()) {
    const auto type = TypeNamed(item);
    if (!type) return std::nullopt;
    types |= *type;
  }
  return types;
}

void RequireBelow(std::optional<NumberBound>& bound, const NumberBound& other) {
  const int order = bound ? Compare(other.value, bound->value) : -1;
  if (order < 0) bound = other;
  if (order == 0) bound->is_exclusive |= other.is_exclusive;
}

void RequireAbove(std::optional<NumberBound>& bound, const NumberBound& other) {
  const int order = bound ? Compare(other.value, bound->value) : 1;
  if (order > 0) bound = other;
  if (order == 0) bound->is_exclusive |= other.is_exclusive;
}

}  // namespace

Status SchemaReader::ReadNumberKeyword(const Json& schema, const std::string& key,
                                       const Json& value, SchemaNeeds& needs) {
  if (value.IsBool() && key.starts_with("exclusive")) return OkStatus();  // draft 4, read below
  const auto decimal = value.IsNumber() ? DecimalOf(value) : std::nullopt;
  if (!decimal) {
    return SchemaError(PointerTo(schema), key,
                       "expected a number of at most 15 digits before and after the point");
  }
  const bool is_least = key == "minimum" || key == "exclusiveMinimum";
  const Json* flag = schema.Find(is_least ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool is_exclusive =
      key.starts_with("exclusive") || (flag != nullptr && flag->IsBool() && flag->AsBool());
  if (is_least) {
    RequireAbove(needs.least, {*decimal, is_exclusive});
  } else {
    RequireBelow(needs.most, {*decimal, is_exclusive});
  }
  return OkStatus();
}

Status SchemaReader::ReadKeywords(const Json& schema, SchemaNeeds& needs) {
  SchemaNeeds::ObjectPart object;
  SchemaNeeds::ArrayPart array;
  const auto refuse = [&](std::string_view key, std::string_view message) {
    return SchemaError(PointerTo(schema), key, message);
  };
  for (const auto& [key, value] : schema.members()) {
    if (std::ranges::find(kRefused, key) != kRefused.end()) {
      if (!AsksNothing(key, value)) return refuse(key, "is not supported");
    } else if (key == "type") {
      auto types = ReadTypes(value);
      if (!types) return refuse(key, "expected the name of a type, or a list of them");
      if (const Json* nullable = schema.Find("nullable"); nullable && *nullable == Json(true)) {
        *types |= kJsonNull;
      }
      needs.types &= *types;
    } else if (key == "enum" || key == "const") {
      if (key == "enum" && !value.IsArray()) return refuse(key, "expected a list of values");
      std::vector<Json> values = key == "enum" ? value.items() : std::vector<Json>{value};
      if (needs.values) {
        if (values.size() * needs.values->size() > kMostCompared) {
          return refuse(key, "too many values to compare with those of another list");
        }
        std::erase_if(values, [&](const Json& candidate) {
          return std::ranges::find(*needs.values, candidate) == needs.values->end();
        });
      }
      needs.values = std::move(values);
    } else if (key == "minimum" || key == "maximum" || key == "exclusiveMinimum" ||
               key == "exclusiveMaximum") {
      TROUPE_RETURN_IF_ERROR(ReadNumberKeyword(schema, key, value, needs));
    } else if (key == "minLength" || key == "maxLength" || key == "minItems" || key == "maxItems") {
      if (!value.IsCount() || value.AsCount() > 1'000'000) {
        return refuse(key, "expected a whole number from 0 to 1000000");
      }
      const auto count = static_cast<std::uint32_t>(value.AsCount());
      auto& least = key == "minLength" ? needs.least_length : needs.least_items;
      auto& most = key == "maxLength" ? needs.most_length : needs.most_items;
      if (key.starts_with("min")) {
        least = std::max(least, count);
      } else {
        most = std::min(most.value_or(count), count);
      }
    } else if (key == "pattern") {
      if (!value.IsString()) return refuse(key, "expected a text");
      if (needs.pattern && *needs.pattern != value.AsString()) {
        return refuse(key, "two patterns for one value are not supported");
      }
      needs.pattern = value.AsString();
    } else if (key == "format") {
      if (!value.IsString()) return refuse(key, "expected a text");
      // The others are remarks, as the standard has it.
      const bool is_known =
          std::ranges::find(kKnownFormats, value.AsString()) != kKnownFormats.end();
      if (is_known && needs.format && *needs.format != value.AsString()) {
        return refuse(key, "two formats for one value are not supported");
      }
      if (is_known) needs.format = value.AsString();
    } else if (key == "properties") {
      if (!value.IsObject()) return refuse(key, "expected an object of schemas");
      std::size_t all = value.size();
      for (const SchemaNeeds::ObjectPart& part : needs.objects) all += part.properties.size();
      if (all > kMostNames)
        return refuse(key, fmt::format("{}, expected at most {}", all, kMostNames));
      for (const auto& [name, property] : value.members()) {
        if (!IsSchema(property)) return refuse(key, fmt::format("'{}' is no schema", name));
        object.properties.emplace_back(name, &property);
      }
    } else if (key == "additionalProperties") {
      if (!IsSchema(value)) return refuse(key, "expected a schema");
      object.additional = &value;
    } else if (key == "required") {
      if (value.IsBool()) continue;  // draft 3, where it stands in the property; a remark since
      if (!value.IsArray()) return refuse(key, "expected a list of names");
      for (const Json& name : value.items()) {
        if (!name.IsString()) return refuse(key, "expected a list of names");
        if (needs.required.size() > kMostNames) {
          return refuse(key, fmt::format("more than {}", kMostNames));
        }
        if (!needs.Requires(name.AsString())) needs.required.push_back(name.AsString());
      }
    } else if (key == "prefixItems" || (key == "items" && value.IsArray())) {
      if (!IsListOfSchemas(value)) return refuse(key, "expected a list of schemas");
      for (const Json& item : value.items()) array.prefix.push_back(&item);
    } else if (key == "items" || key == "additionalItems") {
      if (!IsSchema(value)) return refuse(key, "expected a schema");
      const Json* items = schema.Find("items");
      if (key == "items" || (items != nullptr && items->IsArray())) array.rest = &value;
    }
  }
  if (!object.properties.empty() || object.additional != nullptr) {
    needs.objects.push_back(std::move(object));
  }
  if (!array.prefix.empty() || array.rest != nullptr) needs.arrays.push_back(std::move(array));
  return OkStatus();
}

}  // namespace troupe
