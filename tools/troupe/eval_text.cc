#include "troupe/eval_text.h"

#include "troupe/text_input.h"

namespace troupe {

void EvalText::AddTo(Options& options) {
  options.Add("--text", text_, "Text file to score (- for standard input)").Type("FILE");
  options.Add("--ids-file", ids_file_, "File of token ids to score as they are, in place of a text")
      .Type("FILE");
}

Result<ScoredText> EvalText::Read(const Tokenizer& tokenizer) const {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(name()));
  ScoredText scored;
  if (text_.empty()) {
    Result<std::vector<TokenId>> ids = ParseTokenIds(text);
    if (!ids.ok()) return Status(ids.status()).WithContext(name());
    scored.ids = std::move(*ids);
    return scored;
  }
  if (tokenizer.vocab().add_bos) scored.begin = tokenizer.vocab().bos;
  Result<std::vector<TokenId>> ids = tokenizer.Encode(text, {.add_special = false});
  if (!ids.ok()) return Status(ids.status()).WithContext(name());
  scored.ids = std::move(*ids);
  return scored;
}

}  // namespace troupe
