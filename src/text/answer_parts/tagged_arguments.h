// The arguments of a call that are written between tags, as rules: texts stand there as they are,
// and all else as JSON. What a schema says through references, allOf and anyOf counts as well.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/tool_set.h"
#include "text/grammar/grammar_builder.h"
#include "text/grammar/schema_needs.h"

namespace troupe {

// For one grammar.
class TaggedArguments {
 public:
  TaggedArguments(const CallMarks& marks, GrammarBuilder& builder)
      : marks_(marks), builder_(builder) {}

  // All from after the name of the tool to the end of the call. What a schema says and these rules
  // cannot keep to is passed over, unless the tool is strict: kInvalidArgument then. Where a strict
  // tool gives a text a length, the text has none of the first characters of marks.
  Result<GrammarItem> Of(const Tool& tool);

 private:
  Result<GrammarItem> ArgumentsOf(const Tool& tool, SchemaReader& reader, const SchemaNeeds& needs);
  Result<GrammarItem> Value(const Tool& tool, SchemaReader& reader, const std::string& name,
                            const Schemas& schemas);
  // Texts that satisfy one of these; nothing: any.
  Result<std::optional<std::vector<GrammarSequence>>> Texts(const std::vector<SchemaNeeds>& choices,
                                                            bool is_strict);
  Result<GrammarSequence> TextOf(const SchemaNeeds& needs);
  GrammarSequence OnLinesOfItsOwn(GrammarItem content) const;
  GrammarItem LineOpen() const;
  GrammarItem AnyText();

  const CallMarks& marks_;
  GrammarBuilder& builder_;
  std::optional<GrammarItem> any_text_;
};

}  // namespace troupe
