#include "troupe/eval_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "troupe/text_input.h"

namespace troupe {
namespace {

// Bytes of a text that are read for each token that is wanted, and some more, so that where the
// text is cut changes none of them. Where tokens are longer, more of it is read.
constexpr std::size_t kBytesOfAToken = 16, kLeastBytes = 64 << 10;

}  // namespace

void EvalText::AddTo(Options& options) {
  options.Add("-f,--text", text_, "Text file to score (- for standard input)").Type("FILE");
  options.Add("--ids-file", ids_file_, "File of token ids to score as they are, in place of a text")
      .Type("FILE");
}

Status EvalText::Load(std::size_t most_tokens) {
  TROUPE_ASSIGN_OR_RETURN(source_, TextSource::Open(name()));
  const std::size_t whole = std::string().max_size() / 2;
  const bool all = text_.empty() || most_tokens >= (whole - kLeastBytes) / kBytesOfAToken;
  return source_->ReadTo(all ? whole : kLeastBytes + kBytesOfAToken * most_tokens);
}

Bytes EvalText::Memory() const {
  // A token has a byte at least. The list of tokens is copied while it grows, and blanks may be
  // written as three bytes meanwhile.
  constexpr std::uint64_t kOfAByte = 1 + 3 * sizeof(TokenId) + 3;
  return kOfAByte * Bytes(source_->text().size());
}

Result<std::vector<TokenId>> EvalText::Encode(const Tokenizer& tokenizer) const {
  // What is cut off behind does not matter: it is far behind the tokens that are wanted.
  std::string_view text = source_->text();
  if (!source_->ended()) text = text.substr(0, WholeCharacters(text));
  return tokenizer.Encode(text, {.add_special = false});
}

Result<ScoredText> EvalText::Tokens(const Tokenizer& tokenizer, std::size_t most_tokens) {
  ScoredText scored;
  if (text_.empty()) {
    Result<std::vector<TokenId>> ids = ParseTokenIds(source_->text());
    if (!ids.ok()) return Status(ids.status()).WithContext(name());
    scored.ids = std::move(*ids);
  } else {
    if (tokenizer.vocab().add_bos) scored.begin = tokenizer.vocab().bos;
    for (;;) {
      Result<std::vector<TokenId>> ids = Encode(tokenizer);
      if (!ids.ok()) return Status(ids.status()).WithContext(name());
      scored.ids = std::move(*ids);
      if (source_->ended() || scored.ids.size() > most_tokens) break;
      TROUPE_RETURN_IF_ERROR(source_->ReadTo(2 * source_->text().size()));  // few, long tokens
    }
  }
  source_.reset();
  scored.ids.resize(std::min(scored.ids.size(), most_tokens));
  scored.ids.shrink_to_fit();
  return scored;
}

}  // namespace troupe
