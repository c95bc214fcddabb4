// A text that is free unless it begins in one of some ways: where it does, it follows a grammar
// from there on. For calls of tools that nothing marks but the beginning of the answer.
// lazy_grammar.h has texts that wait for a mark anywhere.
#pragma once

#include <span>
#include <string>

#include "text/grammar/grammar.h"
#include "text/grammar/grammar_builder.h"

namespace troupe {

struct AnchoredStart {
  std::string text;  // valid UTF-8, not empty
  GrammarItem rest;  // what has to follow it, up to the end
};

// No text of `starts` may begin with another one.
GrammarItem FreeUnlessStarted(std::span<const AnchoredStart> starts, GrammarBuilder& builder);

}  // namespace troupe
