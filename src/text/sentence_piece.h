// The SentencePiece kind of tokenizer ("llama"): blanks are written U+2581, neighbouring characters
// are joined by the score of the token they make, and characters without a token become byte
// tokens, or the unknown token where the vocabulary has none.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/pair_merge.h"
#include "text/tokenizer.h"

namespace troupe {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(Vocab vocab);  // which is valid

 private:
  Status EncodeText(std::string_view text, bool begins_text,
                    std::vector<TokenId>& out) const override;
  void AppendBytes(std::string_view character, std::vector<TokenId>& out) const;

  std::unordered_map<std::string_view, TokenId> index_;  // of tokens that text may become
  std::size_t longest_ = 0;                              // bytes of the longest of these
  std::array<TokenId, 256> byte_tokens_;                 // kNoToken: none
};

}  // namespace troupe
