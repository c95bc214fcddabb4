// What a text is cut into, as the vocabulary writes its tokens: for tests of tokenizers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace troupe {

inline std::vector<std::string> AsWritten(const Tokenizer& tokenizer,
                                          std::span<const TokenId> ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    tokens.push_back(tokenizer.vocab().tokens[static_cast<std::size_t>(id)]);
  }
  return tokens;
}

inline std::vector<std::string> CutInto(const Tokenizer& tokenizer, std::string_view text,
                                        EncodeOptions options = {.add_special = false}) {
  return AsWritten(tokenizer, tokenizer.Encode(text, options).value());
}

}  // namespace troupe
