// Counts the tokens of an answer's reasoning as they come, and says when there have been enough of
// them. What the reasoning says is answer_parser.h's; who generates writes its end (generation.h).
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_parts/answer_style.h"
#include "text/answer_parts/part_reader.h"

namespace troupe {

// Where answers of a style reason, and how their reasoning is ended: REQUIRES style.HasReasoning().
Reasoning ReasoningOf(const AnswerStyle& style, const PartOptions& options);

class ReasoningMeter {
 public:
  explicit ReasoningMeter(Reasoning reasoning);

  // A token, with the characters that it completes: maybe none. `in_character`: it has begun
  // another one.
  void Push(std::string_view text, bool in_character = false);

  // Those that began within reasoning. A mark that has only begun may be text, and counts as such.
  std::size_t tokens() const { return tokens_; }
  // There are as many tokens as there may be, the reasoning goes on, and no character has begun,
  // and no mark that could still come in a few tokens.
  bool MustEnd() const;

 private:
  enum class State { kBefore, kInside, kAfter };

  void LookForOpen();
  void LookForClose();

  Reasoning reasoning_;
  State state_;
  std::size_t tokens_ = 0;
  bool in_character_ = false;
  std::string held_;                 // with which a mark may have begun
  std::vector<std::size_t> begins_;  // in what is held, of tokens that were counted
};

}  // namespace troupe
