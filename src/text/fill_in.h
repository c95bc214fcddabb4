// Prompts with a gap: the text before it, the text after it, and three marks by which a model knows
// that it shall write what stands between. Files name the marks, or their texts are known ones.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace troupe {

// Of a valid vocabulary; nothing if one of the three is missing: the model fills no gaps.
std::optional<FillInMarks> FindFillInMarks(const Vocab& vocab);

// Ends where the gap begins. Text is text: no special token is found in it.
Result<std::vector<TokenId>> EncodeFillIn(const Tokenizer& tokenizer, std::string_view before,
                                          std::string_view after);

}  // namespace troupe
