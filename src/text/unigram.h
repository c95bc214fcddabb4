// The unigram kind of SentencePiece ("t5"): of all ways to cut a text into pieces the one whose
// scores have the largest sum. Before that a map of characters is applied, runs of blanks become
// one, and those at both ends go; what no piece covers becomes the unknown token, neighbours
// together. Decoding gives the text as it was cut, not as it was written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/char_map.h"
#include "text/token_trie.h"
#include "text/tokenizer.h"

namespace troupe {

class UnigramTokenizer final : public Tokenizer {
 public:
  UnigramTokenizer(Vocab vocab, CharMap map);  // the vocabulary is valid

 private:
  Status EncodeText(std::string_view text, bool begins_text,
                    std::vector<TokenId>& out) const override;
  // As pieces write it.
  std::string Normalise(std::string_view text, bool begins_text) const;
  void CutWord(std::string_view word, std::vector<TokenId>& out) const;

  CharMap map_;
  TokenTrie pieces_;
  float unknown_score_ = 0;
  bool joins_words_ = false;  // a piece goes on behind a blank: all of a text is one word
};

}  // namespace troupe
