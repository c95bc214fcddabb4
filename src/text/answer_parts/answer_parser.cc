#include "text/answer_parts/answer_parser.h"

#include <utility>

namespace troupe {

AnswerParser::AnswerParser(const AnswerStyle& style, const PartOptions& options,
                           std::shared_ptr<const ToolSet> tools)
    : tools_(std::move(tools)),
      reader_(style.calls.syntax == CallSyntax::kHarmony
                  ? MakeHarmonyReader(options)
                  : MakeMarkedReader(style, options, *tools_)) {}

AnswerEvents AnswerParser::Push(std::string_view piece) {
  AnswerEvents events;
  held_ += piece;
  reader_->Read(held_, /*ended=*/false, events);
  return events;
}

AnswerEvents AnswerParser::Finish() {
  AnswerEvents events;
  reader_->Read(held_, /*ended=*/true, events);
  return events;
}

}  // namespace troupe
