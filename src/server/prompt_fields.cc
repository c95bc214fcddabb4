#include "server/prompt_fields.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace troupe {

void CheckPromptBytes(const JsonValue& at, std::size_t bytes) {
  if (bytes <= kMostPromptBytes) return;
  JsonValue::Refuse(fmt::format("{}: {} bytes of text, expected at most {}", at.place(), bytes,
                                kMostPromptBytes));
}

std::vector<TokenId> TokensIn(const JsonValue& ids) {
  if (!ids.IsArray()) ids.Fail("an array of token ids");
  constexpr auto kMostId = static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max());
  std::vector<TokenId> prompt;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    prompt.push_back(static_cast<TokenId>(ids.At(i).Count(0, kMostId)));
  }
  return prompt;
}

std::size_t CountPrompts(const JsonValue& prompt) {
  const bool several =
      prompt.IsArray() && prompt.size() > 0 && !prompt.At(std::size_t{0}).raw().IsNumber();
  return several ? prompt.size() : 1;
}

std::vector<Prompt> PromptsIn(const JsonValue& prompt, std::size_t most) {
  if (prompt.IsString()) {
    CheckPromptBytes(prompt, prompt.raw().AsString().size());
    return {prompt.String()};
  }
  if (!prompt.IsArray() || prompt.size() == 0) {
    prompt.Fail("a text, an array of texts, or of token ids");
  }
  if (prompt.At(std::size_t{0}).raw().IsNumber()) return {TokensIn(prompt)};
  if (prompt.size() > most) prompt.Fail(fmt::format("at most {} of them", most));
  std::vector<Prompt> prompts;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const JsonValue one = prompt.At(i);
    if (one.IsArray()) {
      prompts.emplace_back(TokensIn(one));
      continue;
    }
    if (one.IsString()) CheckPromptBytes(prompt, bytes += one.raw().AsString().size());
    prompts.emplace_back(one.String());
  }
  return prompts;
}

}  // namespace troupe
