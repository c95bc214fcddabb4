// Places in a JSON Schema: what "$ref" names, and what errors name.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

// "#/properties/name" of a value of the document; "#" for what is not in it. Looks at the whole
// document: for errors.
std::string PointerTo(const Json& document, const Json& value);

// The schema that a reference as "#/$defs/name" leads to. The error says only what is wrong with
// the reference, not where it stands.
Result<const Json*> FollowReference(const Json& document, std::string_view reference);

// What may stand where a schema is expected, and where a list of them is.
bool IsSchema(const Json& json);
bool IsListOfSchemas(const Json& json);

// "schema '#/a': keyword 'k': message".
Status SchemaError(const std::string& pointer, std::string_view keyword, std::string_view message);

}  // namespace troupe
