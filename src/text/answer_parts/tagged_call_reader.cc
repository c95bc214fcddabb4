// Calls whose arguments stand between tags, each by itself and without quotes: Qwen3-Coder's,
// Seed's, GLM's, MiniMax's. An argument is told when it is complete.
#include <string_view>

#include "base/json.h"
#include "text/answer_parts/sectioned_call_reader.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestTag = 512;

// Most templates put a line end around a value, which is no part of it.
std::string_view WithoutLineEnds(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

class TaggedCallReader final : public SectionedCallReader {
 public:
  TaggedCallReader(const CallMarks& marks, const ToolSet& tools)
      : SectionedCallReader(marks), tools_(tools) {}

 private:
  Scan ReadName(std::string& held, bool ended, AnswerEvents& events) override {
    if (const Scan open = BeginsWith(held, marks().open, ended); open != Scan::kYes) return open;
    const std::size_t at = marks().open.size() + BlanksAt(held, marks().open.size());
    const std::string ends = "\n<>" + marks().name_end.substr(0, 1);
    std::size_t end = std::string_view(held).substr(0, at + kLongestTag).find_first_of(ends, at);
    if (end == held.npos) return held.size() < at + kLongestTag && !ended ? Scan::kMore : Scan::kNo;
    if (end == at) return Scan::kNo;
    const std::string name = held.substr(at, end - at);
    const Scan name_end = BeginsWith(std::string_view(held).substr(end), marks().name_end, ended);
    if (name_end != Scan::kYes) return name_end;
    end += marks().name_end.size();
    AddEvent(AnswerEvent::Kind::kCall, name, events);
    held.erase(0, end);
    name_ = name;
    arguments_ = 0;
    return Scan::kYes;
  }

  // Another argument, or the end of the call.
  Scan ReadRest(std::string& held, bool ended, AnswerEvents& events) override {
    held.erase(0, BlanksAt(held));
    const Scan key = BeginsWith(held, marks().key_open, ended);
    const Scan close = BeginsWith(held, marks().close, ended);
    if (key != Scan::kYes && close != Scan::kYes) {
      if (!ended && (key == Scan::kMore || close == Scan::kMore)) return Scan::kMore;
      if (!held.empty()) Tell(arguments_ > 0 ? "}" : "{}", events);
      return Scan::kNo;
    }
    if (close == Scan::kYes) {
      Tell(arguments_ > 0 ? "}" : "{}", events);
      held.erase(0, marks().close.size());
      EndCall();
      return Scan::kYes;
    }
    return ReadKeyAndValue(held, ended, events);
  }

  Scan ReadKeyAndValue(std::string& held, bool ended, AnswerEvents& events) {
    const std::string_view text = held;
    const std::size_t key_at = marks().key_open.size();
    const std::size_t key_end = text.find(marks().key_end, key_at);
    if (key_end == text.npos) return Incomplete(held, ended, text.substr(key_at), {}, events);
    const std::string_view key = text.substr(key_at, key_end - key_at);
    std::size_t at = key_end + marks().key_end.size();
    if (!marks().value_open.empty()) {
      const std::size_t begin = at + BlanksAt(text, at);
      const Scan open = BeginsWith(text.substr(begin), marks().value_open, ended);
      if (open == Scan::kMore) return open;
      if (open == Scan::kYes) at = begin + marks().value_open.size();
    }
    const std::size_t end = text.find(marks().value_end, at);
    if (end == text.npos) return Incomplete(held, ended, key, text.substr(at), events);
    const std::string_view between = text.substr(at, end - at);
    const std::string_view value = marks().exact_values ? between : WithoutLineEnds(between);
    TellKey(key, events);
    Tell(tools_.JsonOfArgument(name_, key, value), events);
    held.erase(0, end + marks().value_end.size());
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

  void TellKey(std::string_view key, AnswerEvents& events) {
    Tell(arguments_++ > 0 ? "," : "{", events);
    Tell(Json(key).Dump() + ":", events);
  }
  static void Tell(std::string_view text, AnswerEvents& events) {
    AddEvent(AnswerEvent::Kind::kArguments, text, events);
  }

  const ToolSet& tools_;
  std::string name_;
  std::size_t arguments_ = 0;
};

}  // namespace

std::unique_ptr<CallReader> MakeTaggedCallReader(const CallMarks& marks, const ToolSet& tools) {
  return std::make_unique<TaggedCallReader>(marks, tools);
}

}  // namespace troupe
