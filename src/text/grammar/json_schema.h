// Compiles a JSON Schema to a grammar of JSON texts that satisfy it: every text of the grammar is
// valid, and every valid value has a text, unless this says otherwise.
//
//   - Properties come in the order of the schema, optional ones may be missing. Properties without
//   a name
//     come last, and only where additionalProperties asks for them or no property has a name.
//   - Supported: type, enum, const, $ref within the schema, allOf, anyOf, oneOf if its branches can
//   be told
//     apart, nullable; properties, required, additionalProperties; items, prefixItems,
//     additionalItems, minItems, maxItems; minLength, maxLength, pattern (pattern_rules.h), format
//     date, time, date-time and uuid; minimum, maximum and their exclusive forms, exactly.
//   - Other keywords that decide what is valid are refused. What only describes is ignored: title,
//     description, default, examples, other formats, and all keywords that the standard does not
//     know.
//   - Numbers have at most 16 digits before and after the point; blanks are few (json_grammar.h).
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "text/grammar/grammar.h"
#include "text/grammar/schema_needs.h"

namespace troupe {

// kInvalidArgument names the JSON pointer and the keyword of what is not understood;
// kResourceExhausted says that the schema becomes too large.
Result<Grammar> CompileJsonSchema(const Json& schema);
// Of the values that satisfy these schemas of a document together.
Result<Grammar> CompileJsonSchema(const Json& document, const Schemas& schemas);

}  // namespace troupe
