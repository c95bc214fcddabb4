// Calls as JSON objects with "name" and "arguments", alone or in a list, between marks. Where the
// name comes first, arguments are told as they come; an object in another order is read whole.
#include <optional>

#include "base/json.h"
#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

// Reads tokens of JSON at the front of a text that may go on.
class Front {
 public:
  Front(std::string_view text, bool ended) : text_(text), ended_(ended) {}

  Scan Skip(std::string_view mark) {
    at_ += BlanksAt(text_, at_);
    const Scan found = BeginsWith(text_.substr(at_), mark, ended_);
    if (found == Scan::kYes) at_ += mark.size();
    return found;
  }
  Scan String(std::string& out) {
    if (const Scan quote = Skip("\""); quote != Scan::kYes) return quote;
    for (std::size_t end = at_; end < text_.size(); ++end) {
      if (text_[end] == '\\') ++end;
      if (end >= text_.size() || text_[end] != '"') continue;
      const auto read = Json::Parse(text_.substr(at_ - 1, end - at_ + 2));
      if (!read) return Scan::kNo;
      out = read->AsString();
      at_ = end + 1;
      return Scan::kYes;
    }
    return ended_ ? Scan::kNo : Scan::kMore;
  }
  std::size_t at() const { return at_; }

 private:
  std::string_view text_;
  bool ended_;
  std::size_t at_ = 0;
};

struct CallHead {
  std::string name;
  std::size_t length = 0;  // up to the '{' of the arguments
};

// {"name": "f", "arguments": {
Scan ReadHead(std::string_view text, bool ended, CallHead& head) {
  Front front(text, ended);
  std::string key;
  Scan scan = front.Skip("{");
  if (scan == Scan::kYes) scan = front.String(key);
  if (scan == Scan::kYes && key != "name") return Scan::kNo;
  if (scan == Scan::kYes) scan = front.Skip(":");
  if (scan == Scan::kYes) scan = front.String(head.name);
  if (scan == Scan::kYes) scan = front.Skip(",");
  if (scan == Scan::kYes) scan = front.String(key);
  if (scan == Scan::kYes && key != "arguments" && key != "parameters") return Scan::kNo;
  if (scan == Scan::kYes) scan = front.Skip(":");
  if (scan == Scan::kYes) scan = front.Skip("{");
  if (scan != Scan::kYes) return scan;
  if (head.name.empty()) return Scan::kNo;
  head.length = front.at() - 1;
  return Scan::kYes;
}

struct WholeCall {
  std::string name, arguments;
};

std::optional<WholeCall> CallIn(std::string_view object) {
  const auto json = Json::Parse(object);
  const Json* name = json ? json->Find("name") : nullptr;
  if (name == nullptr || !name->IsString() || name->AsString().empty()) return std::nullopt;
  const Json* arguments = json->Find("arguments");
  if (arguments == nullptr) arguments = json->Find("parameters");
  if (arguments == nullptr) return WholeCall{name->AsString(), "{}"};
  // Some write the JSON of the arguments as a text, as OpenAI's API has it.
  return WholeCall{name->AsString(),
                   arguments->IsString() ? arguments->AsString() : arguments->Dump()};
}

class JsonCallReader final : public CallReader {
 public:
  explicit JsonCallReader(const CallMarks& marks) : marks_(marks) {}

  Outcome Read(std::string& held, bool ended, AnswerEvents& events) override {
    for (;;) {
      Scan scan = Scan::kNo;
      switch (state_) {
        case State::kOpen:
          scan = ReadOpen(held, ended, events);
          if (scan == Scan::kNo) return Outcome::kNotCall;
          break;
        case State::kItem:
          scan = ReadItem(held, ended, events);
          break;
        case State::kArguments:
          scan = ReadArguments(held, ended, events);
          break;
        case State::kRest:
          scan = ReadRest(held, ended);
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
  enum class State { kOpen, kItem, kArguments, kRest, kNext };

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
    CallHead head;
    const Scan scan = ReadHead(held, ended, head);
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
    const auto call = CallIn(std::string_view(held).substr(blanks, length - blanks));
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
