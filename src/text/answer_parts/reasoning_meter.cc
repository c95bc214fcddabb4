#include "text/answer_parts/reasoning_meter.h"

#include <algorithm>
#include <utility>

#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

// Tokens that are waited for beyond the limit while a mark may be under way: texts may be full of
// what marks begin with.
constexpr std::size_t kPatience = 8;

}  // namespace

Reasoning ReasoningOf(const AnswerStyle& style, const PartOptions& options) {
  if (style.calls.syntax == CallSyntax::kHarmony) {
    // Where tools may be called, the model chooses between their channel and that of the answer.
    return {.open = "<|channel|>analysis<|message|>",
            .closes = {"<|end|>", "<|start|>", "<|channel|>"},
            .comes_again = true,
            .end = std::string("<|end|><|start|>assistant<|channel|>") +
                   (options.reads_calls ? "" : "final<|message|>")};
  }
  Reasoning reasoning{.open = style.reasoning_open,
                      .closes = {style.reasoning_close},
                      .begun = options.starts_in_reasoning,
                      .end = style.reasoning_close};
  const CallMarks& calls = style.calls;
  const bool has_marks = calls.syntax != CallSyntax::kNone && calls.syntax != CallSyntax::kBare;
  if (options.reads_calls && has_marks) {
    reasoning.closes.push_back(calls.first());
    if (!calls.section_open.empty()) reasoning.closes.push_back(calls.open);
  }
  return reasoning;
}

ReasoningMeter::ReasoningMeter(Reasoning reasoning)
    : reasoning_(std::move(reasoning)),
      state_(reasoning_.begun ? State::kInside : State::kBefore) {}

bool ReasoningMeter::MustEnd() const {
  if (state_ != State::kInside || !reasoning_.most_tokens || in_character_) return false;
  if (tokens_ < *reasoning_.most_tokens) return false;
  return held_.empty() || tokens_ - *reasoning_.most_tokens >= kPatience;
}

void ReasoningMeter::Push(std::string_view text, bool in_character) {
  in_character_ = in_character;
  if (state_ == State::kAfter) return;
  if (state_ == State::kInside) {
    begins_.push_back(held_.size());
    ++tokens_;
  }
  held_ += text;
  if (state_ == State::kBefore) {
    LookForOpen();
  } else {
    LookForClose();
  }
}

void ReasoningMeter::LookForOpen() {
  const std::string& open = reasoning_.open;
  std::size_t at = 0;
  if (reasoning_.comes_again) {
    at = held_.find(open);
    if (at == held_.npos) {
      held_.erase(0, held_.size() - BeginningAtEnd(held_, open));
      return;
    }
  } else {
    at = BlanksAt(held_);
    const Scan begins = BeginsWith(std::string_view(held_).substr(at), open, /*ended=*/false);
    if (begins == Scan::kMore) return;
    if (begins == Scan::kNo) {
      state_ = State::kAfter;
      held_.clear();
      return;
    }
  }
  held_.erase(0, at + open.size());
  state_ = State::kInside;
  if (held_.empty()) return;
  // The token that ended the mark goes on with reasoning.
  begins_.push_back(0);
  ++tokens_;
  LookForClose();
}

void ReasoningMeter::LookForClose() {
  std::size_t at = held_.npos, length = 0, kept = 0;
  for (const std::string& close : reasoning_.closes) {
    if (const std::size_t found = held_.find(close); found < at) {
      at = found;
      length = close.size();
    }
    kept = std::max(kept, BeginningAtEnd(held_, close));
  }
  if (at != held_.npos) {
    tokens_ -= static_cast<std::size_t>(
        std::ranges::count_if(begins_, [at](std::size_t begin) { return begin >= at; }));
    begins_.clear();
    held_.erase(0, at + length);
    state_ = reasoning_.comes_again ? State::kBefore : State::kAfter;
    if (reasoning_.comes_again) LookForOpen();
    return;
  }
  const std::size_t gone = held_.size() - kept;
  held_.erase(0, gone);
  std::erase_if(begins_, [gone](std::size_t begin) { return begin < gone; });
  for (std::size_t& begin : begins_) begin -= gone;
}

}  // namespace troupe
