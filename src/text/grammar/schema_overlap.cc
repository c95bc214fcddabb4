#include "text/grammar/schema_overlap.h"

#include <algorithm>

namespace troupe {
namespace {

// Whatever the order of members.
bool AreSame(const Json& a, const Json& b) {
  if (a.IsObject() && b.IsObject()) {
    return a.size() == b.size() &&
           std::ranges::all_of(a.members(), [&](const Json::Member& member) {
             const Json* other = b.Find(member.key);
             return other != nullptr && AreSame(member.value, *other);
           });
  }
  if (a.IsArray() && b.IsArray()) return std::ranges::equal(a.items(), b.items(), AreSame);
  return a == b;
}

bool HasValue(const SchemaNeeds& needs, const Json& value) {
  return std::ranges::any_of(*needs.values,
                             [&](const Json& known) { return AreSame(known, value); });
}

// Whether all of the values fail the other's type or list.
bool ValuesAreRefused(const SchemaNeeds& a, const SchemaNeeds& b) {
  return std::ranges::all_of(*a.values, [&](const Json& value) {
    return (TypeOf(value) & a.types) == 0 || (TypeOf(value) & b.types) == 0 ||
           (b.values && !HasValue(b, value));
  });
}

bool BoundsAreApart(const SchemaNeeds& low, const SchemaNeeds& high) {
  if (!low.most || !high.least) return false;
  const int order = Compare(low.most->value, high.least->value);
  return order < 0 || (order == 0 && (low.most->is_exclusive || high.least->is_exclusive));
}

bool Forbids(const SchemaNeeds& needs, const std::string& property) {
  const Schemas schemas = needs.SchemasOf(property);
  return std::ranges::any_of(
      schemas, [](const Json* schema) { return schema->IsBool() && !schema->AsBool(); });
}

bool MayGenerate(const SchemaNeeds& needs, const std::string& property) {
  const auto names = needs.PropertyNames();
  return std::ranges::find(names, property) != names.end() || needs.AdditionalSchemas().has_value();
}

// Whether no object generated for a satisfies b.
Result<bool> ObjectsAreRefused(const SchemaNeeds& a, const SchemaNeeds& b, SchemaReader& reader) {
  for (const std::string& property : b.required) {
    if (!MayGenerate(a, property)) return true;
  }
  for (const std::string& property : a.required) {
    if (Forbids(b, property)) return true;
    const Schemas of_a = a.SchemasOf(property);
    const Schemas of_b = b.SchemasOf(property);
    if (of_a.empty() || of_b.empty()) continue;
    TROUPE_ASSIGN_OR_RETURN(const auto needs_of_a, reader.Read(of_a));
    TROUPE_ASSIGN_OR_RETURN(const auto needs_of_b, reader.Read(of_b));
    bool all_apart = true;
    for (const SchemaNeeds& one : needs_of_a) {
      for (const SchemaNeeds& other : needs_of_b) {
        if (!all_apart) break;
        TROUPE_ASSIGN_OR_RETURN(all_apart, AreDisjoint(one, other, reader));
      }
    }
    if (all_apart) return true;
  }
  return false;
}

}  // namespace

Result<bool> AreDisjoint(const SchemaNeeds& a, const SchemaNeeds& b, SchemaReader& reader) {
  const unsigned common = a.types & b.types;
  if (common == 0) return true;
  if (a.values && ValuesAreRefused(a, b)) return true;
  if (b.values && ValuesAreRefused(b, a)) return true;
  if ((common & ~unsigned{kJsonInteger | kJsonFraction}) == 0) {
    return BoundsAreApart(a, b) || BoundsAreApart(b, a);
  }
  if (common != kJsonObject) return false;
  TROUPE_ASSIGN_OR_RETURN(const bool a_refused, ObjectsAreRefused(a, b, reader));
  if (!a_refused) return false;
  return ObjectsAreRefused(b, a, reader);
}

}  // namespace troupe
