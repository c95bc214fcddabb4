#include "text/grammar/schema_needs.h"

#include <algorithm>
#include <string_view>

#include "text/grammar/schema_overlap.h"
#include "text/grammar/schema_pointer.h"

namespace troupe {
namespace {

constexpr std::size_t kMostChoices = 512;        // of one value, when all anyOf are spread out
constexpr std::uint64_t kMostSteps = 1'000'000;  // schemas looked at for one document
constexpr int kDeepestOverlap = 12;              // oneOf in properties of branches of oneOf

constexpr std::size_t kNowhere = ~std::size_t{0};

void AddOnce(Schemas& schemas, const Json* schema) {
  if (std::ranges::find(schemas, schema) == schemas.end()) schemas.push_back(schema);
}

const Json* PropertyOf(const SchemaNeeds::ObjectPart& part, const std::string& name) {
  for (const auto& [known, schema] : part.properties) {
    if (known == name) return schema;
  }
  return nullptr;
}

}  // namespace

unsigned TypeOf(const Json& value) {
  if (value.IsNull()) return kJsonNull;
  if (value.IsBool()) return kJsonBoolean;
  if (value.IsObject()) return kJsonObject;
  if (value.IsArray()) return kJsonArray;
  if (value.IsString()) return kJsonString;
  const auto decimal = DecimalOf(value);
  return decimal && decimal->fraction.empty() ? kJsonInteger : kJsonFraction;
}

bool SchemaNeeds::Requires(const std::string& property) const {
  return std::ranges::find(required, property) != required.end();
}

std::vector<std::string> SchemaNeeds::PropertyNames() const {
  std::vector<std::string> names;
  std::vector<std::string> sorted;  // a schema may have thousands
  const auto add = [&](const std::string& name) {
    const auto place = std::ranges::lower_bound(sorted, name);
    if (place != sorted.end() && *place == name) return;
    sorted.insert(place, name);
    names.push_back(name);
  };
  for (const ObjectPart& part : objects) {
    for (const auto& [name, schema] : part.properties) add(name);
  }
  for (const std::string& name : required) add(name);
  return names;
}

Schemas SchemaNeeds::SchemasOf(const std::string& property) const {
  Schemas schemas;
  for (const ObjectPart& part : objects) {
    const Json* own = PropertyOf(part, property);
    if (own == nullptr) own = part.additional;
    if (own != nullptr) AddOnce(schemas, own);
  }
  return schemas;
}

Schemas SchemaNeeds::SchemasOfItem(std::size_t i) const {
  Schemas schemas;
  for (const ArrayPart& part : arrays) {
    const Json* own = i < part.prefix.size() ? part.prefix[i] : part.rest;
    if (own != nullptr) AddOnce(schemas, own);
  }
  return schemas;
}

std::optional<Schemas> SchemaNeeds::AdditionalSchemas() const {
  Schemas schemas;
  bool names_properties = false;
  for (const ObjectPart& part : objects) {
    names_properties |= !part.properties.empty();
    if (part.additional == nullptr) continue;
    if (part.additional->IsBool() && !part.additional->AsBool()) return std::nullopt;
    AddOnce(schemas, part.additional);
  }
  if (schemas.empty() && names_properties) return std::nullopt;
  return schemas;
}

Result<std::vector<SchemaNeeds>> SchemaReader::Read(const Schemas& schemas) {
  if (++depth_ > kDeepestOverlap) {
    depth_ = 0;
    return Error(Code::kResourceExhausted, "schema: oneOf nested too deep to tell branches apart");
  }
  std::vector<SchemaNeeds> out;
  std::vector<Step> pending;
  for (const Json* schema : schemas) pending.push_back({schema, kNowhere});
  TROUPE_RETURN_IF_ERROR(Spread({}, std::move(pending), {}, {}, out));
  --depth_;
  return out;
}

Status SchemaReader::Spread(SchemaNeeds needs, std::vector<Step> pending, std::vector<Step> steps,
                            std::vector<Choice> choices, std::vector<SchemaNeeds>& out) {
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (++steps_ > kMostSteps) {
      return Error(Code::kResourceExhausted, "schema: more than {} schemas to combine", kMostSteps);
    }
    const Json& schema = *pending[i].schema;
    for (std::size_t from = pending[i].from; from != kNowhere; from = steps[from].from) {
      if (steps[from].schema != &schema) continue;
      return InvalidArgument("schema '{}': refers to itself without asking for anything",
                             PointerTo(schema));
    }
    if (std::ranges::find(steps, &schema, &Step::schema) != steps.end()) continue;
    const std::size_t here = steps.size();
    steps.push_back(pending[i]);
    if (schema.IsBool()) {
      if (!schema.AsBool()) needs.types = 0;
      continue;
    }
    needs.origin = &schema;
    TROUPE_RETURN_IF_ERROR(ReadKeywords(schema, needs));
    if (const Json* reference = schema.Find("$ref")) {
      if (!reference->IsString()) return SchemaError(PointerTo(schema), "$ref", "expected a text");
      const auto target = FollowReference(document_, reference->AsString());
      if (!target.ok()) {
        return SchemaError(PointerTo(schema), "$ref", target.status().message());
      }
      pending.push_back({*target, here});
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
      const Json* list = schema.Find(keyword);
      if (list == nullptr) continue;
      if (!IsListOfSchemas(*list)) {
        return SchemaError(PointerTo(schema), keyword, "expected a list of schemas");
      }
      if (std::string_view(keyword) == "allOf") {
        for (const Json& part : list->items()) pending.push_back({&part, here});
        continue;
      }
      if (std::string_view(keyword) == "oneOf") {
        TROUPE_RETURN_IF_ERROR(CheckOneOf(schema, *list));
      }
      choices.push_back({list, here});
    }
  }
  if (choices.empty()) {
    if (out.size() >= kMostChoices) {
      return Error(Code::kResourceExhausted, "schema '{}': more than {} combinations of anyOf",
                   needs.origin == nullptr ? "#" : PointerTo(*needs.origin), kMostChoices);
    }
    if (needs.types != 0) out.push_back(std::move(needs));
    return OkStatus();
  }
  const Choice choice = choices.back();
  choices.pop_back();
  for (const Json& branch : choice.branches->items()) {
    TROUPE_RETURN_IF_ERROR(Spread(needs, {{&branch, choice.from}}, steps, choices, out));
  }
  return OkStatus();
}

Status SchemaReader::CheckOneOf(const Json& schema, const Json& branches) {
  std::vector<std::vector<SchemaNeeds>> read;
  for (const Json& branch : branches.items()) {
    TROUPE_ASSIGN_OR_RETURN(auto needs, Read({&branch}));
    read.push_back(std::move(needs));
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    for (std::size_t j = i + 1; j < read.size(); ++j) {
      for (const SchemaNeeds& one : read[i]) {
        for (const SchemaNeeds& other : read[j]) {
          TROUPE_ASSIGN_OR_RETURN(const bool apart, AreDisjoint(one, other, *this));
          if (apart) continue;
          return SchemaError(
              PointerTo(schema), "oneOf",
              fmt::format("branches {} and {} cannot be told apart: a value of both would satisfy "
                          "neither; say anyOf, or give them different types, constants or closed "
                          "sets of properties",
                          i, j));
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe
