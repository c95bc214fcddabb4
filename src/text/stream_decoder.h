// Token ids to text, one at a time: text is handed out as soon as its characters are complete, and
// is always valid UTF-8. Bytes that form no character become U+FFFD.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace troupe {

class StreamDecoder {
 public:
  // at_start = false continues a text that is there already, as an answer continues its prompt.
  // The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {.at_start = false})
      : tokenizer_(&tokenizer), options_(options), drops_blank_(options.at_start) {}

  // Special tokens that give their names nevertheless, in ascending order.
  void Show(std::vector<TokenId> special) { shown_ = std::move(special); }

  // The characters that this token completes; often none. The id must be in the vocabulary.
  std::string Push(TokenId id);
  bool in_character() const { return !held_.empty(); }  // the last token has begun one

  // Ends the text: U+FFFD for a character that never became complete.
  std::string Flush();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::vector<TokenId> shown_;
  bool drops_blank_;
  std::string held_;  // the beginning of a character
};

}  // namespace troupe
