#include "text/sentence_piece.h"

#include <algorithm>
#include <utility>

#include "text/piece_blanks.h"
#include "text/utf8.h"

namespace troupe {
namespace {

std::string WithoutBlanks(std::string_view text, bool add_prefix) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2 + kPieceBlank.size());
  if (add_prefix) escaped += kPieceBlank;
  for (const char c : text) {
    if (c == ' ') {
      escaped += kPieceBlank;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(Vocab valid_vocab)
    : Tokenizer(std::move(valid_vocab)) {
  std::vector<std::string> bytes(size());
  std::unordered_map<std::string, std::uint8_t> byte_names;
  for (int b = 0; b < 256; ++b) {
    byte_names.emplace(ByteTokenText(static_cast<std::uint8_t>(b)), static_cast<std::uint8_t>(b));
  }
  byte_tokens_.fill(kNoToken);
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& token = vocab().tokens[i];
    const bool is_text = IsText(vocab().TypeOf(id));
    const auto byte = byte_names.find(token);
    // By their names: some files give byte tokens another type of text.
    if (byte != byte_names.end() && is_text) {
      byte_tokens_[byte->second] = id;
      bytes[i] = static_cast<char>(byte->second);
      continue;
    }
    bytes[i] = is_text ? WithBlanks(token) : token;
    if (is_text && !token.empty()) {
      index_.insert_or_assign(token,
                              id);  // of equal ones the last; Validate says where they may be
      longest_ = std::max(longest_, token.size());
    }
  }
  for (const std::string& token : vocab().tokens) {
    for (std::size_t at = token.find(kPieceBlank, 1); at < token.size();
         at = token.find(kPieceBlank, at + 1)) {
      joins_blank_[static_cast<std::uint8_t>(token[at - 1])] = true;
    }
  }
  SetTokenBytes(std::move(bytes));
  if (vocab().model != TokenizerModel::kRankedPieces) return;
  std::unordered_map<std::string_view, TokenId> all;  // merges may name tokens of any type
  for (std::size_t i = 0; i < size(); ++i) {
    all.insert_or_assign(vocab().tokens[i], static_cast<TokenId>(i));
  }
  ranks_ = MergeRanks(vocab(), all);
}

Status SentencePieceTokenizer::EncodeText(std::string_view text, bool begins_text,
                                          std::vector<TokenId>& out) const {
  const std::string escaped = WithoutBlanks(text, begins_text && vocab().add_space_prefix);
  if (vocab().model == TokenizerModel::kRankedPieces) return EncodeLines(escaped, out);
  PairMerger merger;
  return EncodePieces(escaped, merger, out);
}

// Runs of line ends and of everything else, in turns.
Status SentencePieceTokenizer::EncodeLines(std::string_view text, std::vector<TokenId>& out) const {
  PairMerger merger;
  while (!text.empty()) {
    const bool ends = text.starts_with('\n');
    const std::size_t next = ends ? text.find_first_not_of('\n') : text.find('\n');
    const std::string_view run = text.substr(0, next);
    text.remove_prefix(run.size());
    if (const auto whole = index_.find(run); ends && whole != index_.end()) {
      out.push_back(whole->second);
    } else {
      TROUPE_RETURN_IF_ERROR(EncodePieces(run, merger, out));
    }
  }
  return OkStatus();
}

std::optional<Merge> SentencePieceTokenizer::FindMerge(std::string_view text, const Symbol& left,
                                                       const Symbol& right) const {
  if (vocab().model == TokenizerModel::kRankedPieces) return ranks_.Find(left.id, right.id);
  const std::size_t length = left.length + right.length;
  if (length > longest_) return std::nullopt;
  const auto token = index_.find(text.substr(left.begin, length));
  if (token == index_.end()) return std::nullopt;
  return Merge{-vocab().scores[static_cast<std::size_t>(token->second)], token->second};
}

Status SentencePieceTokenizer::EncodePieces(std::string_view view, PairMerger& merger,
                                            std::vector<TokenId>& out) const {
  merger.symbols().clear();
  std::size_t word = 0;  // where it begins
  for (std::size_t at = 0; at < view.size();) {
    if (at > 0 && view.substr(at).starts_with(kPieceBlank) &&
        !joins_blank_[static_cast<std::uint8_t>(view[at - 1])]) {
      JoinWord(view, merger, out);
      merger.symbols().clear();
      word = at;
    }
    const std::size_t length = ReadUtf8(view.substr(at)).length;
    TROUPE_RETURN_IF_ERROR(CheckWord(at + length - word));
    const auto token = index_.find(view.substr(at, length));
    merger.symbols().push_back({.begin = static_cast<std::uint32_t>(at),
                                .length = static_cast<std::uint32_t>(length),
                                .id = token == index_.end() ? kNoToken : token->second});
    at += length;
  }
  JoinWord(view, merger, out);
  return OkStatus();
}

void SentencePieceTokenizer::JoinWord(std::string_view view, PairMerger& merger,
                                      std::vector<TokenId>& out) const {
  merger.Run([&](const Symbol& left, const Symbol& right) { return FindMerge(view, left, right); });
  for (const Symbol& symbol : merger.symbols()) {
    if (symbol.length == 0) continue;
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
    } else {
      AppendBytes(view.substr(symbol.begin, symbol.length), out);
    }
  }
}

void SentencePieceTokenizer::AppendBytes(std::string_view character,
                                         std::vector<TokenId>& out) const {
  const auto token_of = [this](char c) { return byte_tokens_[static_cast<std::uint8_t>(c)]; };
  if (std::any_of(character.begin(), character.end(),
                  [&](char c) { return token_of(c) == kNoToken; })) {
    out.push_back(*vocab().unk);  // Validate saw to it that there is one
    return;
  }
  std::transform(character.begin(), character.end(), std::back_inserter(out), token_of);
}

}  // namespace troupe
