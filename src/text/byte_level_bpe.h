// The GPT-2 kind of tokenizer ("gpt2"): text is cut into words (pre_tokenizer.h), and inside each
// word bytes are joined by the rank of the merge, best first. A byte that the vocabulary has no
// token for becomes the unknown token or, where there is none either, nothing: as in the tokenizers
// these vocabularies come from, which lost bytes that occurred in no training text.
#pragma once

#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merge_ranks.h"
#include "text/pair_merge.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace troupe {

class ByteLevelBpeTokenizer final : public Tokenizer {
 public:
  ByteLevelBpeTokenizer(Vocab vocab, PreTokenizer pre_tokenizer);  // the vocabulary is valid

 private:
  Status EncodeText(std::string_view text, bool begins_text,
                    std::vector<TokenId>& out) const override;
  void EncodeWord(std::string_view word, PairMerger& merger, std::vector<TokenId>& out) const;

  PreTokenizer pre_tokenizer_;
  MergeRanks merges_;
  std::unordered_map<std::string_view, TokenId> words_;  // by their bytes; if merges are ignored
  std::array<TokenId, 256> byte_tokens_;                 // kNoToken: none
};

}  // namespace troupe
