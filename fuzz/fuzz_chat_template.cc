// Any bytes as a chat template, rendered over a chat: it ends with a text or an error, within small
// limits, and twice with the same one. Its segments are its text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/jinja/template.h"

namespace troupe::jinja {
namespace {

TemplateValues MakeValues() {
  TemplateValues values = TemplateValues::FromJson(*Json::Parse(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Gr\u00fc\u00dfe \ud83c\udf88"},
                 {"role": "assistant", "content": null, "tool_calls": [
                   {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]},
                 {"role": "tool", "content": "x", "tool_call_id": "1"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})"));
  values.now = std::tm{};
  return values;
}

void CheckTemplate(std::string_view source) {
  static const TemplateValues values = MakeValues();
  constexpr RenderLimits kSmall = {.steps = 20'000,
                                   .output_bytes = 1 << 16,
                                   .string_bytes = 1 << 16,
                                   .list_items = 1000,
                                   .made_bytes = 1 << 22};
  const Result<Template> parsed = Template::Parse(source);
  if (!parsed.ok()) return;
  const Result<MarkedText> text = parsed->RenderMarked(values, kSmall);
  const Result<std::string> again = parsed->Render(values, kSmall);
  TROUPE_CHECK(text.ok() == again.ok());
  if (!text.ok()) {
    TROUPE_CHECK(text.status().message() == again.status().message());
    return;
  }
  TROUPE_CHECK(text->bytes() == *again && again->size() <= kSmall.output_bytes);
  std::string together;
  for (const TextSegment& segment : text->Segments()) together += segment.text;
  TROUPE_CHECK(together == *again);
}

}  // namespace
}  // namespace troupe::jinja

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::jinja::CheckTemplate({reinterpret_cast<const char*>(data), size});
  return 0;
}
