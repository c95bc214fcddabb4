// Calls as JSON objects with "name" and "arguments", alone or in a list, between marks. Where the
// name comes first, arguments are told as they come; an object in another order is read whole.
#include <optional>

#include "base/check.h"
#include "text/answer_parts/json_call_text.h"
#include "text/answer_parts/stepped_call_reader.h"

namespace troupe {
namespace {

class JsonCallReader final : public SteppedCallReader {
 public:
  explicit JsonCallReader(const CallMarks& marks) : marks_(marks) {}

 private:
  enum class State { kOpen, kItem, kArguments, kRest, kNext };

  Scan Step(std::string& held, bool ended, AnswerEvents& events) override {
    switch (state_) {
      case State::kOpen:
        return ReadOpen(held, ended, events);
      case State::kItem:
        return ReadItem(held, ended, events);
      case State::kArguments:
        return ReadArguments(held, ended, events);
      case State::kRest:
        return ReadRest(held, ended);
      case State::kNext:
        return ReadNext(held, ended);
    }
    TROUPE_CHECK(false);
  }

  // The first object is read together with the mark before it: without one there is no call.
  Scan ReadOpen(std::string& held, bool ended, AnswerEvents& events) {
    std::size_t at = marks_.open.size();
    at += BlanksAt(held, at);
    if (at < held.size() && held[at] == '[') {
      in_list_ = true;
      ++at;
      at += BlanksAt(held, at);
    }
    if (at == held.size()) return ended ? Scan::kNo : Scan::kMore;
    std::string item = held.substr(at);
    const Scan scan = ReadItem(item, ended, events);
    if (scan == Scan::kYes) held = std::move(item);
    return scan;
  }

  Scan ReadItem(std::string& held, bool ended, AnswerEvents& events) {
    using Kind = AnswerEvent::Kind;
    JsonCallHead head;
    const Scan scan = ReadCallHead(held, ended, head);
    if (scan == Scan::kMore) return scan;
    if (scan == Scan::kYes) {
      AddEvent(Kind::kCall, head.name, events);
      held.erase(0, head.length);
      arguments_ = JsonExtent();
      state_ = State::kArguments;
      return Scan::kYes;
    }
    const std::size_t blanks = BlanksAt(held);
    if (blanks == held.size()) return ended ? Scan::kNo : Scan::kMore;
    if (held[blanks] != '{') return Scan::kNo;
    JsonExtent object;
    const std::size_t length = blanks + object.Take(std::string_view(held).substr(blanks));
    if (!object.ended()) return ended ? Scan::kNo : Scan::kMore;
    const auto call = ReadWholeCall(std::string_view(held).substr(blanks, length - blanks));
    if (!call) return Scan::kNo;
    AddEvent(Kind::kCall, call->name, events);
    AddEvent(Kind::kArguments, call->arguments, events);
    held.erase(0, length);
    state_ = State::kNext;
    return Scan::kYes;
  }

  Scan ReadArguments(std::string& held, bool ended, AnswerEvents& events) {
    const std::size_t length = arguments_.Take(held);
    AddEvent(AnswerEvent::Kind::kArguments, std::string_view(held).substr(0, length), events);
    held.erase(0, length);
    if (!arguments_.ended()) return ended ? Scan::kNo : Scan::kMore;
    state_ = State::kRest;
    rest_.reset();
    return Scan::kYes;
  }

  // What stands after the arguments in their object, an id maybe.
  Scan ReadRest(std::string& held, bool ended) {
    if (!rest_) {
      held.erase(0, BlanksAt(held));
      if (held.empty()) return ended ? Scan::kNo : Scan::kMore;
      if (held[0] != '}' && held[0] != ',') {
        state_ = State::kNext;
        return Scan::kYes;
      }
      rest_ = JsonExtent(1);
    }
    held.erase(0, rest_->Take(held));
    if (!rest_->ended()) return ended ? Scan::kNo : Scan::kMore;
    state_ = State::kNext;
    return Scan::kYes;
  }

  Scan ReadNext(std::string& held, bool ended) {
    held.erase(0, BlanksAt(held));
    if (held.empty()) return ended ? Scan::kNo : Scan::kMore;
    if (in_list_ && held[0] == ',') {
      held.erase(0, 1);
      state_ = State::kItem;
      return Scan::kYes;
    }
    if (in_list_ && held[0] == ']') {
      in_list_ = false;
      held.erase(0, 1);
      return Scan::kYes;
    }
    if (marks_.close.empty()) return Scan::kNo;
    const Scan close = BeginsWith(held, marks_.close, ended);
    if (close == Scan::kMore) return close;
    if (close == Scan::kYes) held.erase(0, marks_.close.size());
    return Scan::kNo;
  }

  const CallMarks marks_;
  State state_ = State::kOpen;
  bool in_list_ = false;
  JsonExtent arguments_;
  std::optional<JsonExtent> rest_;
};

}  // namespace

std::unique_ptr<CallReader> MakeJsonCallReader(const CallMarks& marks) {
  return std::make_unique<JsonCallReader>(marks);
}

}  // namespace troupe
