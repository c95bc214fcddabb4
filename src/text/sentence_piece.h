// The SentencePiece kind of tokenizer ("llama"): blanks are written U+2581, neighbouring characters
// are joined by the score of the token they make, and characters without a token become byte
// tokens, or the unknown token where the vocabulary has none. Gemma 4's ("gemma4") joins by the
// rank of the merge instead, and within lines: line ends are joined with line ends alone, and a run
// of them that is a token stays whole.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merge_ranks.h"
#include "text/pair_merge.h"
#include "text/tokenizer.h"

namespace troupe {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(Vocab vocab);  // which is valid

 private:
  Status EncodeText(std::string_view text, bool begins_text,
                    std::vector<TokenId>& out) const override;
  // Text whose blanks are written already. It is joined word by word where no token goes on behind
  // a blank: the same tokens, and the memory of a word.
  Status EncodePieces(std::string_view text, PairMerger& merger, std::vector<TokenId>& out) const;
  // The merger has the characters of one word, which stand in `text`.
  void JoinWord(std::string_view text, PairMerger& merger, std::vector<TokenId>& out) const;
  Status EncodeLines(std::string_view text, std::vector<TokenId>& out) const;
  std::optional<Merge> FindMerge(std::string_view text, const Symbol& left,
                                 const Symbol& right) const;
  void AppendBytes(std::string_view character, std::vector<TokenId>& out) const;

  std::unordered_map<std::string_view, TokenId> index_;  // of tokens that text may become
  MergeRanks ranks_;                                     // of models that have them
  std::size_t longest_ = 0;                              // bytes of the longest of these
  std::array<TokenId, 256> byte_tokens_;                 // kNoToken: none
  // By the last byte of a character: whether a token has a blank behind such a one.
  std::array<bool, 256> joins_blank_{};
};

}  // namespace troupe
