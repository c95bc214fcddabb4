// A call without marks, Llama's: the whole answer is one JSON object that names a tool of the
// request. Whether it is one is known at its end alone, so nothing of it is told before; an answer
// that cannot become one is let go as soon as that is seen.
#include <algorithm>
#include <array>
#include <optional>

#include "base/json.h"
#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/json_call_text.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

// Within which the first key of the object, and the name after it, have to end.
constexpr std::size_t kLongestHead = 1024;
constexpr std::array<std::string_view, 5> kFirstKeys = {"name", "type", "id", "parameters",
                                                        "arguments"};

class BareCallReader final : public CallReader {
 public:
  BareCallReader(const CallMarks& marks, const ToolSet& tools) : mark_(marks.open), tools_(tools) {}

  Outcome Read(std::string& held, bool ended, AnswerEvents& events) override {
    const Scan possible = Follow(held, ended);
    if (possible == Scan::kNo) return Outcome::kNotCall;
    if (!ended) return Outcome::kMore;
    const auto call = CallIn(std::string_view(held).substr(*begin_, read_ - *begin_));
    if (!call) return Outcome::kNotCall;
    AddEvent(AnswerEvent::Kind::kCall, call->name, events);
    AddEvent(AnswerEvent::Kind::kArguments, call->arguments, events);
    held.clear();
    return Outcome::kDone;
  }

 private:
  // Whether all that has come may be such an object; kYes: it is complete.
  Scan Follow(std::string_view held, bool ended) {
    if (!begin_) {
      const Scan begins = FindBegin(held, ended);
      if (begins != Scan::kYes) return begins;
    }
    read_ += object_.Take(held.substr(read_));
    if (!head_fits_) {
      const std::string_view head = held.substr(*begin_).substr(0, kLongestHead);
      const Scan fits = HeadFits(head, ended || head.size() == kLongestHead);
      if (fits == Scan::kNo) return fits;
      head_fits_ = fits == Scan::kYes;
    }
    if (!object_.ended()) return ended ? Scan::kNo : Scan::kMore;
    return BlanksAt(held, read_) == held.size() - read_ ? Scan::kYes : Scan::kNo;
  }

  Scan FindBegin(std::string_view held, bool ended) {
    std::size_t at = BlanksAt(held);
    const Scan mark = BeginsWith(held.substr(at), mark_, ended);
    if (at == held.size() || mark == Scan::kMore) return ended ? Scan::kNo : Scan::kMore;
    if (mark == Scan::kYes) at += mark_.size() + BlanksAt(held, at + mark_.size());
    const Scan brace = BeginsWith(held.substr(at), "{", ended);
    if (brace == Scan::kYes) begin_ = read_ = at;
    return brace;
  }

  Scan HeadFits(std::string_view text, bool ended) const {
    JsonFront front(text, ended);
    std::string word;
    Scan scan = front.Skip("{");
    if (scan == Scan::kYes) scan = front.String(word);
    if (scan != Scan::kYes) return scan;
    if (std::ranges::find(kFirstKeys, word) == kFirstKeys.end()) return Scan::kNo;
    if (word != "name") return Scan::kYes;
    scan = front.Skip(":");
    if (scan == Scan::kYes) scan = front.String(word);
    if (scan != Scan::kYes) return scan;
    return tools_.Find(word) != nullptr ? Scan::kYes : Scan::kNo;
  }

  // Without "parameters" it may as well be an answer in JSON about something that has a name.
  std::optional<JsonCall> CallIn(std::string_view object) const {
    const auto json = Json::Parse(object);
    if (!json || (json->Find("parameters") == nullptr && json->Find("arguments") == nullptr)) {
      return std::nullopt;
    }
    std::optional<JsonCall> call = ReadWholeCall(object);
    if (!call || tools_.Find(call->name) == nullptr) return std::nullopt;
    const auto arguments = Json::Parse(call->arguments);
    if (!arguments || !arguments->IsObject()) return std::nullopt;
    JsonCallHead head;
    if (ReadCallHead(object, /*ended=*/true, head) == Scan::kYes) {
      // As the model wrote them.
      const std::string_view rest = object.substr(head.length);
      call->arguments = rest.substr(0, JsonExtent().Take(rest));
    }
    return call;
  }

  const std::string mark_;
  const ToolSet& tools_;
  std::optional<std::size_t> begin_;  // of the object
  std::size_t read_ = 0;              // of what is held, as far as object_ has seen it
  JsonExtent object_;
  bool head_fits_ = false;
};

}  // namespace

std::unique_ptr<CallReader> MakeBareCallReader(const CallMarks& marks, const ToolSet& tools) {
  return std::make_unique<BareCallReader>(marks, tools);
}

}  // namespace troupe
