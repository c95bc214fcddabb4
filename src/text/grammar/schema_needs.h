// What a JSON Schema asks of a value, gathered from all the schemas that the value must satisfy
// together: references followed, allOf joined, anyOf and oneOf spread out. json_schema.h makes
// rules of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/grammar/number_rules.h"
#include "text/grammar/schema_pointer.h"

namespace troupe {

// Schemas of one document that a value must satisfy together. None: any value.
using Schemas = std::vector<const Json*>;

// A whole number is of both kinds of numbers.
enum JsonType : std::uint8_t {
  kJsonNull = 1,
  kJsonBoolean = 2,
  kJsonObject = 4,
  kJsonArray = 8,
  kJsonString = 16,
  kJsonInteger = 32,
  kJsonFraction = 64,
  kAnyJsonType = 127,
};

struct SchemaNeeds {
  // What one schema says of objects. A property satisfies its own schema, or `additional`.
  struct ObjectPart {
    std::vector<std::pair<std::string, const Json*>> properties;
    const Json* additional = nullptr;
  };
  struct ArrayPart {
    std::vector<const Json*> prefix;
    const Json* rest = nullptr;
  };

  unsigned types = kAnyJsonType;
  std::optional<std::vector<Json>> values;  // enum and const
  std::optional<NumberBound> least, most;
  std::uint32_t least_length = 0;
  std::optional<std::uint32_t> most_length;
  std::optional<std::string> pattern;
  std::optional<std::string> format;  // one that is known
  std::uint32_t least_items = 0;
  std::optional<std::uint32_t> most_items;
  std::vector<ArrayPart> arrays;
  std::vector<ObjectPart> objects;
  std::vector<std::string> required;  // each once

  const Json* origin = nullptr;  // for errors: the last schema that said something

  bool Requires(const std::string& property) const;
  // All properties that some part names, in order, then those that are required alone.
  std::vector<std::string> PropertyNames() const;
  // What a property must satisfy.
  Schemas SchemasOf(const std::string& property) const;
  Schemas SchemasOfItem(std::size_t i) const;
  // What properties without a name in the schema satisfy; nothing if there may be none. They may
  // stand where a schema says so, or where none names any property.
  std::optional<Schemas> AdditionalSchemas() const;
};

// Reads the schemas of one document. An error names the JSON pointer and the keyword.
class SchemaReader {
 public:
  explicit SchemaReader(const Json& document) : document_(document) {}

  // A value satisfies the schemas when it satisfies one of these. None if nothing does.
  Result<std::vector<SchemaNeeds>> Read(const Schemas& schemas);

  // As "#/properties/name", of a schema of the document.
  std::string PointerTo(const Json& schema) const { return troupe::PointerTo(document_, schema); }

 private:
  // A schema on the way to what it asks, and the one that led to it.
  struct Step {
    const Json* schema;
    std::size_t from;  // its place among the steps
  };
  struct Choice {
    const Json* branches;
    std::size_t from;
  };
  // `pending` grows while it is read; `steps` are those done.
  Status Spread(SchemaNeeds needs, std::vector<Step> pending, std::vector<Step> steps,
                std::vector<Choice> choices, std::vector<SchemaNeeds>& out);
  Status CheckOneOf(const Json& schema, const Json& branches);
  Status ReadKeywords(const Json& schema, SchemaNeeds& needs);
  Status ReadNumberKeyword(const Json& schema, const std::string& key, const Json& value,
                           SchemaNeeds& needs);

  const Json& document_;
  std::uint64_t steps_ = 0;
  int depth_ = 0;
};

unsigned TypeOf(const Json& value);

}  // namespace troupe
