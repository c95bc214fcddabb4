// The grammar of answers in which calls of tools are what their schemas allow: for constrained
// decoding (grammar/token_constraint.h).
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/tool_set.h"
#include "text/grammar/grammar.h"

namespace troupe {

struct CallRules {
  bool must_call = false;
  std::string only = {};                  // the one tool that may be called; empty: any
  bool parallel = true;                   // more than one call in an answer
  bool starts_in_reasoning = false;       // the prompt has opened it
  std::optional<Grammar> otherwise = {};  // what an answer without calls must be; nothing: any text
};

// Reasoning may come before the calls where the style has it. Without tools it is `otherwise` alone
// that is asked for. A schema that is not understood allows any object, unless its tool is strict:
// kInvalidArgument then, and if there is no tool that `only` names.
Result<Grammar> CallGrammar(const AnswerStyle& style, const ToolSet& tools, const CallRules& rules);

}  // namespace troupe
