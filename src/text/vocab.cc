#include "text/vocab.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "text/byte_characters.h"

namespace troupe {
namespace {

using Index = std::unordered_map<std::string_view, TokenId>;

// Text is cut by them, and not by merges.
bool HasScores(TokenizerModel model) {
  return model == TokenizerModel::kSentencePiece || model == TokenizerModel::kUnigram;
}

Status CheckCounts(const Vocab& vocab) {
  const std::size_t count = vocab.tokens.size();
  if (count == 0) return InvalidArgument("{}: no tokens", vocab.origin);
  if (count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    return InvalidArgument("{}: {} tokens, at most {} can be numbered", vocab.origin, count,
                           std::numeric_limits<TokenId>::max());
  }
  const bool needs_scores = HasScores(vocab.model);
  if (vocab.scores.size() != count && (needs_scores || !vocab.scores.empty())) {
    return InvalidArgument("{}: {} scores for {} tokens", vocab.origin, vocab.scores.size(), count);
  }
  for (std::size_t i = 0; i < vocab.scores.size(); ++i) {
    if (!std::isnan(vocab.scores[i])) continue;
    return InvalidArgument("{}: the score of token {} is no number", vocab.origin, i);
  }
  if (vocab.types.size() != count && !vocab.types.empty()) {
    return InvalidArgument("{}: {} token types for {} tokens", vocab.origin, vocab.types.size(),
                           count);
  }
  return OkStatus();
}

Status CheckIds(const Vocab& vocab) {
  const struct {
    std::string_view name;
    std::optional<TokenId> id;
  } named[] = {{"bos", vocab.bos},
               {"eos", vocab.eos},
               {"eot", vocab.eot},
               {"eom", vocab.eom},
               {"unk", vocab.unk},
               {"pad", vocab.pad},
               {"decoder's first", vocab.decoder_start}};
  for (const auto& [name, id] : named) {
    if (id.has_value() && (*id < 0 || static_cast<std::size_t>(*id) >= vocab.tokens.size())) {
      return InvalidArgument("{}: {} token has id {}, but there are {} tokens", vocab.origin, name,
                             *id, vocab.tokens.size());
    }
  }
  if (vocab.add_bos && !vocab.bos.has_value()) {
    return InvalidArgument("{}: texts shall begin with BOS, but no BOS token is named",
                           vocab.origin);
  }
  if (vocab.add_eos && !vocab.eos.has_value()) {
    return InvalidArgument("{}: texts shall end with EOS, but no EOS token is named", vocab.origin);
  }
  return OkStatus();
}

Result<Index> IndexTokens(const Vocab& vocab) {
  Index index;
  index.reserve(vocab.tokens.size());
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i].empty()) continue;  // never matches; some files pad with these
    const auto [place, is_new] = index.emplace(vocab.tokens[i], static_cast<TokenId>(i));
    if (is_new) continue;
    // Gemma 4's has some of its tokens twice, of which the later ones count.
    if (vocab.model == TokenizerModel::kRankedPieces) {
      place->second = static_cast<TokenId>(i);
    } else {
      return InvalidArgument("{}: token '{}' is there twice, as {} and {}", vocab.origin,
                             vocab.tokens[i], place->second, i);
    }
  }
  return index;
}

// Both parts of a merge and its result must be tokens: the tokenizer relies on all three.
Status CheckMerges(const Vocab& vocab, const Index& index) {
  std::string whole;
  for (std::size_t i = 0; i < vocab.merges.size(); ++i) {
    const std::string_view merge = vocab.merges[i];
    const std::size_t blank = merge.find(' ', 1);
    if (blank == std::string_view::npos || blank + 1 == merge.size()) {
      return InvalidArgument("{}: merge {} is '{}', expected two tokens and a blank between them",
                             vocab.origin, i, merge);
    }
    const std::string_view left = merge.substr(0, blank);
    const std::string_view right = merge.substr(blank + 1);
    whole.assign(left).append(right);
    for (const std::string_view token : {left, right, std::string_view(whole)}) {
      if (!index.contains(token)) {
        return InvalidArgument("{}: merge {} is '{}', but '{}' is no token", vocab.origin, i, merge,
                               token);
      }
    }
  }
  return OkStatus();
}

// Byte fallback promises a token for every byte. Published byte-level vocabularies lack bytes that
// were in no training text; one without those of plain English is no byte-level vocabulary.
bool NeedsToken(const Vocab& vocab, int byte) {
  if (vocab.model == TokenizerModel::kByteLevelBpe) return byte >= 0x20 && byte < 0x7F;
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;  // these occur in no valid UTF-8
}

Status CheckBytes(const Vocab& vocab, const Index& index) {
  if (vocab.unk.has_value()) return OkStatus();
  for (int b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    const std::string name = vocab.model == TokenizerModel::kByteLevelBpe
                                 ? std::string(CharacterOfByte(byte))
                                 : ByteTokenText(byte);
    const auto token = index.find(name);
    const bool has_token = token != index.end() && IsText(vocab.TypeOf(token->second));
    if (NeedsToken(vocab, b) && !has_token) {
      return InvalidArgument("{}: byte 0x{:02X} has no token ('{}'), and there is no unknown token",
                             vocab.origin, b, name);
    }
  }
  return OkStatus();
}

}  // namespace

Status Vocab::Validate() const {
  TROUPE_RETURN_IF_ERROR(CheckCounts(*this));
  TROUPE_RETURN_IF_ERROR(CheckIds(*this));
  TROUPE_ASSIGN_OR_RETURN(const Index index, IndexTokens(*this));
  if (model == TokenizerModel::kUnigram && !unk.has_value()) {
    return InvalidArgument("{}: a unigram tokenizer without an unknown token", origin);
  }
  if (!HasScores(model)) {
    if (merges.empty()) return InvalidArgument("{}: a tokenizer by merges without any", origin);
    TROUPE_RETURN_IF_ERROR(CheckMerges(*this, index));
  }
  return CheckBytes(*this, index);
}

std::string ByteTokenText(std::uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace troupe
