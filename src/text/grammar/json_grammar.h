// The grammar of JSON, for answers of which only that is asked, and as the stock of json_schema.h.
// Blanks may stand only where printers put them, and few at a time: a model must not be able to go
// on with blanks for ever. Numbers have at most 16 digits before and after the point.
#pragma once

#include "text/grammar/grammar.h"

namespace troupe {

// Any JSON value. Its rules have the names by which GrammarBuilder::Json finds them.
Grammar JsonGrammar();

// Any JSON object, which is what response_format {"type": "json_object"} promises.
Grammar JsonObjectGrammar();

}  // namespace troupe
