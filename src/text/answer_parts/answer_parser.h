// Divides the text of an answer, as it comes, into content, reasoning and calls of tools. What is
// made of a text never depends on how it is cut into pieces. Nothing but the marks of parts and the
// blanks around them is left out: what looks like a call and is none is content.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/answer_parts/answer_event.h"
#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/part_reader.h"
#include "text/answer_parts/tool_set.h"

namespace troupe {

class AnswerParser {
 public:
  AnswerParser(const AnswerStyle& style, const PartOptions& options,
               std::shared_ptr<const ToolSet> tools);

  AnswerEvents Push(std::string_view piece);
  // The text has ended.
  AnswerEvents Finish();

 private:
  std::shared_ptr<const ToolSet> tools_;
  std::unique_ptr<PartReader> reader_;
  std::string held_;
};

}  // namespace troupe
