#include "text/byte_level_bpe.h"

#include <utility>

#include "text/byte_characters.h"

namespace troupe {

ByteLevelBpeTokenizer::ByteLevelBpeTokenizer(Vocab valid_vocab, PreTokenizer pre_tokenizer)
    : Tokenizer(std::move(valid_vocab)), pre_tokenizer_(std::move(pre_tokenizer)) {
  std::unordered_map<std::string_view, TokenId> index;
  index.reserve(size());
  std::vector<std::string> bytes(size());
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& token = vocab().tokens[i];
    index.emplace(token, id);
    bytes[i] = IsText(vocab().TypeOf(id)) ? CharactersToBytes(token) : token;
  }
  SetTokenBytes(std::move(bytes));

  for (int b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    const auto token = index.find(CharacterOfByte(byte));
    const bool has_token = token != index.end() && IsText(vocab().TypeOf(token->second));
    byte_tokens_[byte] = has_token ? token->second : kNoToken;
  }
  merges_ = MergeRanks(vocab(), index);
  if (!pre_tokenizer_.ignores_merges()) return;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (IsText(vocab().TypeOf(id))) words_.emplace(TokenBytes(id), id);
  }
}

Status ByteLevelBpeTokenizer::EncodeText(std::string_view text, bool /*begins_text*/,
                                         std::vector<TokenId>& out) const {
  PairMerger merger;
  return pre_tokenizer_.ForEachWord(text, [&](std::string_view word) {
    TROUPE_RETURN_IF_ERROR(CheckWord(word.size()));
    EncodeWord(word, merger, out);
    return OkStatus();
  });
}

void ByteLevelBpeTokenizer::EncodeWord(std::string_view word, PairMerger& merger,
                                       std::vector<TokenId>& out) const {
  if (pre_tokenizer_.ignores_merges()) {
    if (const auto whole = words_.find(word); whole != words_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  merger.symbols().clear();
  for (std::size_t i = 0; i < word.size(); ++i) {
    const TokenId id = byte_tokens_[static_cast<std::uint8_t>(word[i])];
    merger.symbols().push_back({.begin = static_cast<std::uint32_t>(i), .length = 1, .id = id});
  }
  merger.Run(
      [this](const Symbol& left, const Symbol& right) { return merges_.Find(left.id, right.id); });
  for (const Symbol& symbol : merger.symbols()) {
    if (symbol.length == 0) continue;
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
    } else if (vocab().unk.has_value()) {
      out.push_back(*vocab().unk);
    }
  }
}

}  // namespace troupe
