// Reads GBNF, llama.cpp's notation for grammars: rules "name ::= alternatives", "texts", [classes],
// '.', groups, '|', and the repetitions * + ? {m} {m,} {m,n}. Groups become rules of their own.
// References to tokens, as <think> or <[1000]>, are refused: our grammars are about text.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/grammar/grammar.h"

namespace troupe {

// The rule "root" becomes the root. An error names line and column, what is there, and what was
// expected. The grammar is valid within the limits.
Result<Grammar> ParseGbnf(std::string_view text, const GrammarLimits& limits = {});

// The same for the common parts of grammars that we write ourselves, with another root.
Result<Grammar> ParseGbnf(std::string_view text, std::string_view root,
                          const GrammarLimits& limits);

}  // namespace troupe
