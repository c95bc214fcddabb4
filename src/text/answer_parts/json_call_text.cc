#include "text/answer_parts/json_call_text.h"

#include "base/json.h"

namespace troupe {

Scan JsonFront::Skip(std::string_view mark) {
  at_ += BlanksAt(text_, at_);
  const Scan found = BeginsWith(text_.substr(at_), mark, ended_);
  if (found == Scan::kYes) at_ += mark.size();
  return found;
}

Scan JsonFront::String(std::string& out) {
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

Scan ReadCallHead(std::string_view text, bool ended, JsonCallHead& head) {
  JsonFront front(text, ended);
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

std::optional<JsonCall> ReadWholeCall(std::string_view object) {
  const auto json = Json::Parse(object);
  const Json* name = json ? json->Find("name") : nullptr;
  if (name == nullptr || !name->IsString() || name->AsString().empty()) return std::nullopt;
  const Json* arguments = json->Find("arguments");
  if (arguments == nullptr) arguments = json->Find("parameters");
  if (arguments == nullptr) return JsonCall{name->AsString(), "{}"};
  // Some write the JSON of the arguments as a text, as OpenAI's API has it.
  return JsonCall{name->AsString(),
                  arguments->IsString() ? arguments->AsString() : arguments->Dump()};
}

}  // namespace troupe
