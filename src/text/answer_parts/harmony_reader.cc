// Messages with channels, as gpt-oss writes them: analysis is reasoning, a recipient makes a call,
// all else is content. The prompt has written "<|start|>assistant" before the first.
#include <algorithm>
#include <array>

#include "text/answer_parts/part_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr std::array<std::string_view, 5> kEnds = {"<|end|>", "<|return|>", "<|call|>", "<|start|>",
                                                   "<|channel|>"};
constexpr std::array<std::string_view, 5> kHeads = {"<|start|>", "<|channel|>",
                                                    "to=", "<|constrain|>", kMessage};
constexpr std::size_t kLongestHeader = 512;

// What stands behind the key in a header, up to a blank or the next mark.
std::string_view ValueOf(std::string_view head, std::string_view key) {
  const std::size_t at = head.find(key);
  if (at == head.npos) return {};
  const std::string_view value = head.substr(at + key.size());
  return value.substr(0, value.find_first_of(" <\n"));
}

class HarmonyReader final : public PartReader {
 public:
  explicit HarmonyReader(const PartOptions& options) : options_(options) {}

  void Read(std::string& held, bool ended, AnswerEvents& events) override {
    while (in_body_ ? ReadBody(held, ended, events) : ReadHead(held, ended, events)) {
    }
  }

 private:
  using Kind = AnswerEvent::Kind;

  // False if the text is used up.
  bool ReadHead(std::string& held, bool ended, AnswerEvents& events) {
    const std::size_t blanks = BlanksAt(held);
    const std::string_view text = std::string_view(held).substr(blanks);
    if (text.empty()) {
      if (ended) held.clear();
      return false;
    }
    bool may_come = false;
    for (const std::string_view head : kHeads) {
      may_come = may_come || BeginsWith(text, head, ended) != Scan::kNo;
    }
    const std::size_t end = text.substr(0, kLongestHeader).find(kMessage);
    const bool too_long = end == text.npos && (ended || text.size() >= kLongestHeader);
    if (may_come && !too_long && end == text.npos) return false;
    in_body_ = true;
    kind_ = Kind::kContent;
    if (!may_come || too_long) {
      // No header: all of it is text, even if it begins with a mark.
      AddEvent(kind_, std::string_view(held).substr(0, blanks + 1), events);
      held.erase(0, blanks + 1);
      return true;
    }
    const std::string_view head = text.substr(0, end);
    std::string_view recipient = ValueOf(head, "to=");
    const std::string_view channel = ValueOf(head, "<|channel|>");
    if (!recipient.empty() && options_.reads_calls) {
      constexpr std::string_view kNamespace = "functions.";
      if (recipient.starts_with(kNamespace)) recipient.remove_prefix(kNamespace.size());
      kind_ = Kind::kArguments;
      name_ = recipient;
    } else if (channel == "analysis" && options_.reads_reasoning) {
      kind_ = Kind::kReasoning;
    }
    held.erase(0, blanks + end + kMessage.size());
    return true;
  }

  bool ReadBody(std::string& held, bool ended, AnswerEvents& events) {
    if (kind_ == Kind::kArguments && !name_.empty()) {
      AddEvent(Kind::kCall, name_, events);
      name_.clear();
    }
    std::size_t at = held.npos;
    std::string_view mark;
    std::size_t kept = 0;
    for (const std::string_view end : kEnds) {
      if (const std::size_t found = held.find(end); found < at) {
        at = found;
        mark = end;
      }
      kept = std::max(kept, BeginningAtEnd(held, end));
    }
    const std::size_t shown = at != held.npos ? at : held.size() - (ended ? 0 : kept);
    AddEvent(kind_, std::string_view(held).substr(0, shown), events);
    held.erase(0, shown);
    if (at == held.npos) return false;
    if (mark != kEnds[3] && mark != kEnds[4]) held.erase(0, mark.size());
    in_body_ = false;
    return true;
  }

  const PartOptions options_;
  bool in_body_ = false;
  Kind kind_ = Kind::kContent;
  std::string name_;
};

}  // namespace

std::unique_ptr<PartReader> MakeHarmonyReader(const PartOptions& options) {
  return std::make_unique<HarmonyReader>(options);
}

}  // namespace troupe
