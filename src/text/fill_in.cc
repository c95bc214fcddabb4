#include "text/fill_in.h"

#include <array>
#include <cstddef>

namespace troupe {
namespace {

struct MarkTexts {
  std::string_view before, after, middle;
};

// Of Qwen, DeepSeek, Granite and StarCoder, GLM, CodeLlama, Falcon.
constexpr auto kKnown = std::to_array<MarkTexts>({
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},
    {"<|prefix|>", "<|suffix|>", "<|middle|>"},
});

}  // namespace

std::optional<FillInMarks> FindFillInMarks(const Vocab& vocab) {
  if (vocab.fill_before && vocab.fill_after && vocab.fill_middle) {
    return FillInMarks{
        .before = *vocab.fill_before, .after = *vocab.fill_after, .middle = *vocab.fill_middle};
  }
  constexpr TokenId kNone = -1;
  std::array<FillInMarks, kKnown.size()> found;
  found.fill({.before = kNone, .after = kNone, .middle = kNone});
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    const auto id = static_cast<TokenId>(i);
    for (std::size_t k = 0; k < kKnown.size(); ++k) {
      if (text == kKnown[k].before) found[k].before = id;
      if (text == kKnown[k].after) found[k].after = id;
      if (text == kKnown[k].middle) found[k].middle = id;
    }
  }
  for (const FillInMarks& marks : found) {
    if (marks.before != kNone && marks.after != kNone && marks.middle != kNone) return marks;
  }
  return std::nullopt;
}

Result<std::vector<TokenId>> EncodeFillIn(const Tokenizer& tokenizer, std::string_view before,
                                          std::string_view after) {
  const std::optional<FillInMarks>& marks = tokenizer.fill_in_marks();
  if (!marks) {
    return Error(Code::kUnimplemented,
                 "this model fills no gaps: its vocabulary has no marks for it");
  }
  std::vector<TokenId> ids;
  const auto add = [&](TokenId mark, std::string_view text) -> Status {
    ids.push_back(mark);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> part,
                            tokenizer.Encode(text, {.add_special = false}));
    ids.insert(ids.end(), part.begin(), part.end());
    return OkStatus();
  };
  if (tokenizer.vocab().add_bos) ids.push_back(*tokenizer.vocab().bos);
  TROUPE_RETURN_IF_ERROR(add(marks->before, before));
  TROUPE_RETURN_IF_ERROR(add(marks->after, after));
  ids.push_back(marks->middle);
  return ids;
}

}  // namespace troupe
