// Calls as a name and the JSON of the arguments, each after a mark of its own: DeepSeek's,
// Mistral's newer ones, functionary's.
#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestNamePart = 512;

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(BlanksAt(text));
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

class NamedCallReader final : public CallReader {
 public:
  explicit NamedCallReader(const CallMarks& marks) : marks_(marks) {}

  Outcome Read(std::string& held, bool ended, AnswerEvents& events) override {
    for (;;) {
      Scan scan = Scan::kNo;
      switch (state_) {
        case State::kFirst:
          scan = ReadFirst(held, ended, events);
          if (scan == Scan::kNo) return Outcome::kNotCall;
          break;
        case State::kName:
          scan = ReadName(held, ended, events);
          break;
        case State::kArguments:
          scan = ReadArguments(held, ended, events);
          break;
        case State::kClose:
          scan = ReadClose(held, ended);
          break;
        case State::kNext:
          scan = ReadNext(held, ended);
          break;
      }
      if (scan == Scan::kMore) return Outcome::kMore;
      if (scan == Scan::kNo) return Outcome::kDone;
    }
  }

 private:
  enum class State { kFirst, kName, kArguments, kClose, kNext };

  // A section without a call in it is none.
  Scan ReadFirst(std::string& held, bool ended, AnswerEvents& events) {
    if (marks_.section_open.empty() || !held.starts_with(marks_.section_open)) {
      return ReadName(held, ended, events);
    }
    const std::size_t at = marks_.section_open.size();
    std::string call = held.substr(at + BlanksAt(held, at));
    const Scan scan = ReadName(call, ended, events);
    if (scan == Scan::kYes) held = std::move(call);
    in_section_ = scan == Scan::kYes;
    return scan;
  }

  // The mark, the name, and what ends it.
  Scan ReadName(std::string& held, bool ended, AnswerEvents& events) {
    if (const Scan open = BeginsWith(held, marks_.open, ended); open != Scan::kYes) return open;
    const std::string_view rest = std::string_view(held).substr(marks_.open.size());
    const std::size_t end = rest.substr(0, kLongestNamePart).find(marks_.name_end);
    if (end == rest.npos) return rest.size() < kLongestNamePart && !ended ? Scan::kMore : Scan::kNo;
    std::string_view name = rest.substr(0, end);
    name = Trimmed(name.substr(0, name.find("[CALL_ID]")));
    if (name.empty()) return Scan::kNo;
    AddEvent(AnswerEvent::Kind::kCall, name, events);
    held.erase(0, marks_.open.size() + end + marks_.name_end.size());
    state_ = State::kArguments;
    arguments_ = JsonExtent();
    begun_ = false;
    return Scan::kYes;
  }

  Scan ReadArguments(std::string& held, bool ended, AnswerEvents& events) {
    if (!begun_) {
      held.erase(0, BlanksAt(held));
      if (held.empty()) return ended ? Scan::kNo : Scan::kMore;
      begun_ = held[0] == '{';
    }
    if (begun_) {
      const std::size_t length = arguments_.Take(held);
      AddEvent(AnswerEvent::Kind::kArguments, std::string_view(held).substr(0, length), events);
      held.erase(0, length);
      if (!arguments_.ended()) return ended ? Scan::kNo : Scan::kMore;
    }
    state_ = State::kClose;
    return Scan::kYes;
  }

  Scan ReadClose(std::string& held, bool ended) {
    state_ = State::kNext;
    const std::string_view mark = Trimmed(marks_.close);
    if (mark.empty()) return Scan::kYes;
    state_ = State::kClose;
    held.erase(0, BlanksAt(held));
    const Scan close = BeginsWith(held, mark, ended);
    if (close == Scan::kMore) return close;
    if (close == Scan::kYes) held.erase(0, mark.size());
    state_ = State::kNext;
    return Scan::kYes;
  }

  Scan ReadNext(std::string& held, bool ended) {
    if (!in_section_) return Scan::kNo;
    held.erase(0, BlanksAt(held));
    const Scan open = BeginsWith(held, marks_.open, ended);
    const Scan close = BeginsWith(held, marks_.section_close, ended);
    if (open == Scan::kYes) {
      state_ = State::kName;
      return open;
    }
    if (close == Scan::kYes) {
      held.erase(0, marks_.section_close.size());
      return Scan::kNo;
    }
    return open == Scan::kMore || close == Scan::kMore ? Scan::kMore : Scan::kNo;
  }

  const CallMarks marks_;
  State state_ = State::kFirst;
  bool in_section_ = false, begun_ = false;
  JsonExtent arguments_;
};

}  // namespace

std::unique_ptr<CallReader> MakeNamedCallReader(const CallMarks& marks) {
  return std::make_unique<NamedCallReader>(marks);
}

}  // namespace troupe
