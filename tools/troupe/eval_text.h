// The text that a command scores: --text, or --ids-file with token ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/tokenizer.h"
#include "troupe/option_table.h"
#include "troupe/text_source.h"

namespace troupe {

struct ScoredText {
  std::vector<TokenId> ids;
  std::optional<TokenId> begin;  // what the model wants before a text; token ids come as they are
};

class EvalText {
 public:
  void AddTo(Options& options);

  bool given() const { return !text_.empty() || !ids_file_.empty(); }
  bool given_once() const { return text_.empty() != ids_file_.empty(); }
  const std::string& name() const { return text_.empty() ? ids_file_ : text_; }

  // Reads it, or as much of it as this number of tokens is sure to be found in.
  Status Load(std::size_t most_tokens);
  // What the text and its tokens take, for the plan of memory. After Load.
  Bytes Memory() const;
  // At most that number of tokens. Once, after Load.
  Result<ScoredText> Tokens(const Tokenizer& tokenizer, std::size_t most_tokens);

 private:
  Result<std::vector<TokenId>> Encode(const Tokenizer& tokenizer) const;

  std::string text_, ids_file_;
  std::optional<TextSource> source_;
};

}  // namespace troupe
