// The text that a command scores: --text, or --ids-file with token ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "troupe/option_table.h"

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

  Result<ScoredText> Read(const Tokenizer& tokenizer) const;

 private:
  std::string text_, ids_file_;
};

}  // namespace troupe
