// Calls as a name and the JSON of the arguments, each after a mark of its own: DeepSeek's, Kimi's,
// Mistral's newer ones, functionary's.
#include <algorithm>

#include "text/answer_parts/sectioned_call_reader.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestNamePart = 512;

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(BlanksAt(text));
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// "find:0" without the number of the call.
std::string_view WithoutNumber(std::string_view name) {
  const std::size_t at = name.rfind(':');
  if (at == name.npos || at + 1 == name.size()) return name;
  const bool is_number =
      std::ranges::all_of(name.substr(at + 1), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? name.substr(0, at) : name;
}

class NamedCallReader final : public SectionedCallReader {
 public:
  explicit NamedCallReader(const CallMarks& marks) : SectionedCallReader(marks) {}

 private:
  Scan ReadName(std::string& held, bool ended, AnswerEvents& events) override {
    if (const Scan open = BeginsWith(held, marks().open, ended); open != Scan::kYes) return open;
    const std::string_view rest = std::string_view(held).substr(marks().open.size());
    const std::size_t end = rest.substr(0, kLongestNamePart).find(marks().name_end);
    if (end == rest.npos) return rest.size() < kLongestNamePart && !ended ? Scan::kMore : Scan::kNo;
    const std::string_view name = NameIn(rest.substr(0, end));
    if (name.empty()) return Scan::kNo;
    AddEvent(AnswerEvent::Kind::kCall, name, events);
    held.erase(0, marks().open.size() + end + marks().name_end.size());
    arguments_ = JsonExtent();
    begun_ = closing_ = false;
    return Scan::kYes;
  }

  std::string_view NameIn(std::string_view text) const {
    std::string_view name = Trimmed(text.substr(0, text.find("[CALL_ID]")));
    if (name.starts_with(marks().name_prefix)) name.remove_prefix(marks().name_prefix.size());
    return marks().numbers_calls ? WithoutNumber(name) : name;
  }

  Scan ReadRest(std::string& held, bool ended, AnswerEvents& events) override {
    return closing_ ? ReadClose(held, ended) : ReadArguments(held, ended, events);
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
    closing_ = true;
    return Scan::kYes;
  }

  Scan ReadClose(std::string& held, bool ended) {
    if (const std::string_view mark = Trimmed(marks().close); !mark.empty()) {
      held.erase(0, BlanksAt(held));
      const Scan close = BeginsWith(held, mark, ended);
      if (close == Scan::kMore) return close;
      if (close == Scan::kYes) held.erase(0, mark.size());
    }
    EndCall();
    return Scan::kYes;
  }

  bool begun_ = false;    // the arguments
  bool closing_ = false;  // they are read
  JsonExtent arguments_;
};

}  // namespace

std::unique_ptr<CallReader> MakeNamedCallReader(const CallMarks& marks) {
  return std::make_unique<NamedCallReader>(marks);
}

}  // namespace troupe
