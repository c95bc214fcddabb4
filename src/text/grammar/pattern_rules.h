// Regular expressions of JSON Schema's "pattern" as rules for the inside of a JSON string:
// characters,
// '.', classes, \d \w \s and their opposites, groups, '|', repetitions, '^' at the beginning and
// '$' at the end of an alternative. Without these two any text may stand before and after. What
// looks around or back is refused.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/grammar/grammar_builder.h"

namespace troupe {

// The error says what is not understood, and where in the pattern.
Result<GrammarItem> AddPattern(std::string_view pattern, GrammarBuilder& builder);

// The same for a text without quotes, which has these characters alone. An error also where the
// pattern asks for another.
Result<GrammarItem> AddPlainPattern(std::string_view pattern, const CodePointSet& characters,
                                    GrammarBuilder& builder);

// The characters of a set as a JSON string writes them, each in the shortest way.
GrammarItem AddJsonCharacters(const CodePointSet& set, GrammarBuilder& builder);

}  // namespace troupe
