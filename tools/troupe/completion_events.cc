#include "troupe/completion_events.h"

#include <algorithm>
#include <optional>

#include "server/http/error_message.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

std::size_t CountIn(const Json& usage, std::string_view key) {
  const Json* count = usage.Find(key);
  return count != nullptr && count->IsCount() ? count->AsCount() : 0;
}

bool HasText(const Json& event) {
  const Json* choices = event.Find("choices");
  if (choices == nullptr || !choices->IsArray()) return false;
  return std::ranges::any_of(choices->items(), [](const Json& choice) {
    const Json* text = choice.Find("text");
    return text != nullptr && text->IsString() && !text->AsString().empty();
  });
}

}  // namespace

void CompletionEvents::Take(std::string_view bytes, double now) {
  while (!bytes.empty() && failed_.ok()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kLongestLine) {
      failed_ = DataLoss("an event of more than {} bytes", kLongestLine);
    }
    if (end == bytes.npos) return;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    TakeLine(line_, now);
    line_.clear();
  }
}

// Lines of other fields and comments say nothing of the answer.
void CompletionEvents::TakeLine(std::string_view line, double now) {
  constexpr std::string_view kData = "data:", kLast = "[DONE]";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == kLast) {
    done_ = true;
    return;
  }
  const std::optional<Json> event = Json::Parse(line);
  if (!event || !event->IsObject()) {
    failed_ = DataLoss("an event that is no JSON object: {}", line.substr(0, 100));
    return;
  }
  TakeEvent(*event, now);
}

void CompletionEvents::TakeEvent(const Json& event, double now) {
  if (const std::optional<std::string> message = ErrorMessageOf(event)) {
    failed_ = Error(Code::kInternal, "{}", *message);
    return;
  }
  if (HasText(event)) {
    text_times_.push_back(now);
    ++tokens_;
  }
  const Json* usage = event.Find("usage");
  if (usage == nullptr || !usage->IsObject()) return;
  prompt_tokens_ = CountIn(*usage, "prompt_tokens");
  tokens_ = CountIn(*usage, "completion_tokens");
}

Status CompletionEvents::End() const {
  TROUPE_RETURN_IF_ERROR(failed_);
  if (!done_) return DataLoss("the stream ended before its last event");
  return OkStatus();
}

}  // namespace troupe
