// Reads the calls of one syntax. For answer_parser.h, which finds where they begin.
#pragma once

#include <memory>
#include <string>

#include "text/answer_parts/answer_event.h"
#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/tool_set.h"

namespace troupe {

class CallReader {
 public:
  enum class Outcome {
    kMore,     // never once the text has ended
    kDone,     // what is left is no part of a call
    kNotCall,  // nothing was taken: `held` is text
  };

  virtual ~CallReader() = default;

  // `held` begins with the first mark of a call at the first call of Read, or with where one of
  // kBare could begin, and with what was left at those after it. What was read is taken from its
  // front.
  virtual Outcome Read(std::string& held, bool ended, AnswerEvents& events) = 0;
};

std::unique_ptr<CallReader> MakeJsonCallReader(const CallMarks& marks);
std::unique_ptr<CallReader> MakeNamedCallReader(const CallMarks& marks);
// `tools` must outlive it.
std::unique_ptr<CallReader> MakeTaggedCallReader(const CallMarks& marks, const ToolSet& tools);
std::unique_ptr<CallReader> MakeBareCallReader(const CallMarks& marks, const ToolSet& tools);

}  // namespace troupe
