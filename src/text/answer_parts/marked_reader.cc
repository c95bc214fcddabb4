// Text in which marks begin and end reasoning and calls. What is no part of either is content, and
// so is a mark that nothing follows that it could mark.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/part_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

class MarkedReader final : public PartReader {
 public:
  MarkedReader(AnswerStyle style, const PartOptions& options, const ToolSet& tools)
      : style_(std::move(style)),
        tools_(tools),
        in_reasoning_(options.starts_in_reasoning && options.reads_reasoning),
        skips_blanks_(in_reasoning_) {
    if (!options.reads_reasoning) style_.reasoning_open.clear();
    if (!options.reads_calls) style_.calls = {};
    may_be_bare_call_ = style_.calls.syntax == CallSyntax::kBare;
  }

  void Read(std::string& held, bool ended, AnswerEvents& events) override {
    for (;;) {
      if (call_ != nullptr) {
        const CallReader::Outcome outcome = call_->Read(held, ended, events);
        if (outcome == CallReader::Outcome::kMore) return;
        call_.reset();
        if (outcome == CallReader::Outcome::kDone) {
          in_reasoning_ = false;
          skips_blanks_ = told_ = true;
        } else {
          // At least the mark's first byte is text; what follows may be a mark again.
          Tell(std::exchange(blanks_, {}) + held.substr(0, 1), events);
          held.erase(0, 1);
        }
        continue;
      }
      if (skips_blanks_) {
        held.erase(0, BlanksAt(held));
        if (held.empty()) return;
        skips_blanks_ = false;
      }
      if (may_be_bare_call_ && !in_reasoning_) {
        const Scan begins = BeginsBareCall(held, ended);
        if (begins == Scan::kMore) return;
        if (begins == Scan::kYes) {
          may_be_bare_call_ = false;
          call_ = MakeCallReader();
          continue;
        }
      }
      if (!ReadText(held, ended, events)) return;
    }
  }

 private:
  // Whether a mark came.
  bool ReadText(std::string& held, bool ended, AnswerEvents& events) {
    const std::vector<std::string_view> marks = MarksIn(held, ended);
    std::size_t at = held.npos;
    std::string_view mark;
    std::size_t kept = 0;
    for (const std::string_view candidate : marks) {
      if (const std::size_t found = held.find(candidate); found < at) {
        at = found;
        mark = candidate;
      }
      kept = std::max(kept, BeginningAtEnd(held, candidate));
    }
    std::size_t shown = at != held.npos ? at : held.size() - (ended ? 0 : kept);
    const std::size_t read = shown;
    if (at != held.npos || !ended) {
      while (shown > 0 && !marks.empty() && IsBlank(held[shown - 1])) --shown;
    }
    Tell(std::string_view(held).substr(0, shown), events);
    if (at == held.npos) {
      held.erase(0, shown);
      return false;
    }
    blanks_ = held.substr(shown, read - shown);
    held.erase(0, read);
    TakeMark(std::string(mark), held);
    return true;
  }

  void TakeMark(const std::string& mark, std::string& held) {
    const bool opens = !in_reasoning_ && mark == style_.reasoning_open;
    if (!opens && !(in_reasoning_ && mark == style_.reasoning_close)) {
      call_ = MakeCallReader();
      return;
    }
    in_reasoning_ = opens;
    told_ = told_ || !opens;
    held.erase(0, mark.size());
    skips_blanks_ = true;
  }

  std::vector<std::string_view> MarksIn(std::string_view held, bool ended) const {
    std::vector<std::string_view> marks;
    if (in_reasoning_) {
      marks.push_back(style_.reasoning_close);
    } else if (MayOpenReasoning(held, ended)) {
      marks.push_back(style_.reasoning_open);
    }
    if (style_.calls.syntax != CallSyntax::kNone && style_.calls.syntax != CallSyntax::kBare) {
      marks.push_back(style_.calls.first());
      if (!style_.calls.section_open.empty()) marks.push_back(style_.calls.open);
    }
    return marks;
  }

  Scan BeginsBareCall(std::string_view held, bool ended) const {
    const std::string_view text = held.substr(BlanksAt(held));
    if (text.empty()) return ended ? Scan::kNo : Scan::kMore;
    return text[0] == '{' ? Scan::kYes : BeginsWith(text, style_.calls.open, ended);
  }

  // Reasoning comes first or not at all.
  bool MayOpenReasoning(std::string_view held, bool ended) const {
    if (told_ || style_.reasoning_open.empty()) return false;
    return BeginsWith(held.substr(BlanksAt(held)), style_.reasoning_open, ended) != Scan::kNo;
  }

  std::unique_ptr<CallReader> MakeCallReader() const {
    switch (style_.calls.syntax) {
      case CallSyntax::kJson:
        return MakeJsonCallReader(style_.calls);
      case CallSyntax::kNamed:
        return MakeNamedCallReader(style_.calls);
      case CallSyntax::kTagged:
        return MakeTaggedCallReader(style_.calls, tools_);
      case CallSyntax::kBare:
        return MakeBareCallReader(style_.calls, tools_);
      case CallSyntax::kNone:
      case CallSyntax::kHarmony:
        break;
    }
    TROUPE_CHECK(false);
  }

  void Tell(std::string_view text, AnswerEvents& events) {
    using Kind = AnswerEvent::Kind;
    AddEvent(in_reasoning_ ? Kind::kReasoning : Kind::kContent, text, events);
    const bool says_something = BlanksAt(text) < text.size();
    told_ = told_ || says_something;
    if (says_something && !in_reasoning_) may_be_bare_call_ = false;
  }

  AnswerStyle style_;
  const ToolSet& tools_;
  bool in_reasoning_;
  bool skips_blanks_;
  bool told_ = false;              // anything but blanks
  bool may_be_bare_call_ = false;  // no content has come yet
  std::string blanks_;             // before a mark that may be none
  std::unique_ptr<CallReader> call_;
};

}  // namespace

std::unique_ptr<PartReader> MakeMarkedReader(const AnswerStyle& style, const PartOptions& options,
                                             const ToolSet& tools) {
  return std::make_unique<MarkedReader>(style, options, tools);
}

}  // namespace troupe
