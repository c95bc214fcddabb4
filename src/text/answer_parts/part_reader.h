// Divides a text that comes in pieces into its parts. For answer_parser.h.
#pragma once

#include <memory>
#include <string>

#include "text/answer_parts/answer_event.h"
#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/tool_set.h"

namespace troupe {

struct PartOptions {
  bool reads_reasoning = true;
  bool reads_calls = false;
  bool starts_in_reasoning = false;  // the prompt has opened it
};

class PartReader {
 public:
  virtual ~PartReader() = default;
  // Takes from the front of `held` what it understands, all of it once the text has ended.
  virtual void Read(std::string& held, bool ended, AnswerEvents& events) = 0;
};

// Text with parts between marks in it. `tools` must outlive it.
std::unique_ptr<PartReader> MakeMarkedReader(const AnswerStyle& style, const PartOptions& options,
                                             const ToolSet& tools);
// Messages with channels.
std::unique_ptr<PartReader> MakeHarmonyReader(const PartOptions& options);

}  // namespace troupe
