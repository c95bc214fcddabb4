#include "text/end_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace troupe {
namespace {

constexpr auto kEndTexts = std::to_array<std::string_view>({
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|EOT|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    // A model that goes on to the next file of a repository has finished this one.
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
});

}  // namespace

std::vector<bool> FindEndTokens(const Vocab& vocab) {
  std::vector<bool> ends(vocab.tokens.size(), false);
  bool has_return = false;
  bool has_call = false;
  std::optional<std::size_t> end_of_part;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    if (std::find(kEndTexts.begin(), kEndTexts.end(), text) == kEndTexts.end()) continue;
    ends[i] = true;
    has_return |= text == "<|return|>";
    has_call |= text == "<|call|>";
    if (text == "<|end|>") end_of_part = i;
  }
  // Answers that end with one of these two have parts, and "<|end|>" ends a part alone.
  if (has_return && has_call && end_of_part.has_value()) ends[*end_of_part] = false;
  for (const std::optional<TokenId> id : {vocab.eos, vocab.eot, vocab.eom}) {
    if (id.has_value()) ends[static_cast<std::size_t>(*id)] = true;
  }
  return ends;
}

}  // namespace troupe
