// Calls whose arguments stand between tags, each by itself and without quotes: Qwen3-Coder's,
// Seed's, GLM's. An argument is told when it is complete.
#include <string_view>

#include "base/json.h"
#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestTag = 512;

// Templates put a line end around a value, which is no part of it.
std::string_view WithoutLineEnds(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

class TaggedCallReader final : public CallReader {
 public:
  TaggedCallReader(const CallMarks& marks, const ToolSet& tools) : marks_(marks), tools_(tools) {}

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
        case State::kArgument:
          scan = ReadArgument(held, ended, events);
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
  enum class State { kFirst, kName, kArgument, kNext };

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

  Scan ReadName(std::string& held, bool ended, AnswerEvents& events) {
    if (const Scan open = BeginsWith(held, marks_.open, ended); open != Scan::kYes) return open;
    const std::size_t at = marks_.open.size() + BlanksAt(held, marks_.open.size());
    std::size_t end = std::string_view(held).substr(0, at + kLongestTag).find_first_of("\n<>", at);
    if (end == held.npos) return held.size() < at + kLongestTag && !ended ? Scan::kMore : Scan::kNo;
    if (end == at) return Scan::kNo;
    const std::string name = held.substr(at, end - at);
    if (!marks_.name_end.empty()) {
      if (held[end] != marks_.name_end[0]) return Scan::kNo;
      ++end;
    }
    AddEvent(AnswerEvent::Kind::kCall, name, events);
    held.erase(0, end);
    name_ = name;
    arguments_ = 0;
    state_ = State::kArgument;
    return Scan::kYes;
  }

  // Another argument, or the end of the call.
  Scan ReadArgument(std::string& held, bool ended, AnswerEvents& events) {
    held.erase(0, BlanksAt(held));
    const Scan key = BeginsWith(held, marks_.key_open, ended);
    const Scan close = BeginsWith(held, marks_.close, ended);
    if (key != Scan::kYes && close != Scan::kYes) {
      if (!ended && (key == Scan::kMore || close == Scan::kMore)) return Scan::kMore;
      if (!held.empty()) Tell(arguments_ > 0 ? "}" : "{}", events);
      return Scan::kNo;
    }
    if (close == Scan::kYes) {
      Tell(arguments_ > 0 ? "}" : "{}", events);
      held.erase(0, marks_.close.size());
      state_ = State::kNext;
      return Scan::kYes;
    }
    return ReadKeyAndValue(held, ended, events);
  }

  Scan ReadKeyAndValue(std::string& held, bool ended, AnswerEvents& events) {
    const std::string_view text = held;
    const std::size_t key_at = marks_.key_open.size();
    const std::size_t key_end = text.find(marks_.key_end, key_at);
    if (key_end == text.npos) return Incomplete(held, ended, text.substr(key_at), {}, events);
    const std::string_view key = text.substr(key_at, key_end - key_at);
    std::size_t at = key_end + marks_.key_end.size();
    if (!marks_.value_open.empty()) {
      const std::size_t begin = at + BlanksAt(text, at);
      const Scan open = BeginsWith(text.substr(begin), marks_.value_open, ended);
      if (open == Scan::kMore) return open;
      if (open == Scan::kYes) at = begin + marks_.value_open.size();
    }
    const std::size_t end = text.find(marks_.value_end, at);
    if (end == text.npos) return Incomplete(held, ended, key, text.substr(at), events);
    const std::string_view value = WithoutLineEnds(text.substr(at, end - at));
    TellKey(key, events);
    Tell(tools_.JsonOfArgument(name_, key, value), events);
    held.erase(0, end + marks_.value_end.size());
    return Scan::kYes;
  }

  // What was cut off is told as a text that has no end.
  Scan Incomplete(std::string& held, bool ended, std::string_view key, std::string_view value,
                  AnswerEvents& events) {
    if (!ended) return Scan::kMore;
    TellKey(key, events);
    std::string text = Json(value).Dump();
    text.pop_back();
    Tell(text, events);
    held.clear();
    return Scan::kNo;
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

  void TellKey(std::string_view key, AnswerEvents& events) {
    Tell(arguments_++ > 0 ? "," : "{", events);
    Tell(Json(key).Dump() + ":", events);
  }
  static void Tell(std::string_view text, AnswerEvents& events) {
    AddEvent(AnswerEvent::Kind::kArguments, text, events);
  }

  const CallMarks marks_;
  const ToolSet& tools_;
  State state_ = State::kFirst;
  bool in_section_ = false;
  std::string name_;
  std::size_t arguments_ = 0;
};

}  // namespace

std::unique_ptr<CallReader> MakeTaggedCallReader(const CallMarks& marks, const ToolSet& tools) {
  return std::make_unique<TaggedCallReader>(marks, tools);
}

}  // namespace troupe
