#include "text/unigram.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "text/piece_blanks.h"
#include "text/utf8.h"

namespace troupe {
namespace {

// Below the worst piece: SentencePiece's.
constexpr float kUnknownPenalty = 10.0f;

// The best way to cut the bytes before a place: where its last piece begins.
struct Cut {
  float score = 0;
  std::uint32_t begin = 0;
  TokenId id = -1;  // none yet
};

}  // namespace

UnigramTokenizer::UnigramTokenizer(Vocab valid_vocab, CharMap map)
    : Tokenizer(std::move(valid_vocab)), map_(std::move(map)) {
  std::vector<std::string> bytes(size());
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& piece = vocab().tokens[i];
    if (vocab().TypeOf(id) != TokenType::kNormal) {
      bytes[i] = piece;
      continue;
    }
    bytes[i] = WithBlanks(piece);
    pieces_.Insert(piece, id);
    unknown_score_ = std::min(unknown_score_, vocab().scores[i]);
    joins_words_ = joins_words_ || piece.find(kPieceBlank, 1) != std::string::npos;
  }
  unknown_score_ -= kUnknownPenalty;
  SetTokenBytes(std::move(bytes));
}

std::string UnigramTokenizer::Normalise(std::string_view text, bool begins_text) const {
  const bool removes = vocab().removes_blanks;
  std::string written;
  bool behind_blank = removes;
  while (!text.empty()) {
    CharMap::Match next = map_.Longest(text);
    if (next.length == 0) {
      const std::size_t length = ReadUtf8(text).length;
      next = {.length = length, .to = text.substr(0, length)};
    }
    text.remove_prefix(next.length);
    while (behind_blank && next.to.starts_with(' ')) next.to.remove_prefix(1);
    for (const char c : next.to) {
      if (c == ' ') {
        written += kPieceBlank;
      } else {
        written += c;
      }
    }
    if (!next.to.empty()) behind_blank = removes && next.to.ends_with(' ');
  }
  while (removes && written.ends_with(kPieceBlank)) {
    written.resize(written.size() - kPieceBlank.size());
  }
  if (begins_text && vocab().add_space_prefix && !written.empty()) {
    written.insert(0, kPieceBlank);
  }
  return written;
}

Status UnigramTokenizer::EncodeText(std::string_view text, bool begins_text,
                                    std::vector<TokenId>& out) const {
  const std::string written = Normalise(text, begins_text);
  std::string_view rest = written;
  while (!rest.empty()) {
    const std::size_t end = joins_words_ ? rest.size() : rest.find(kPieceBlank, 1);
    const std::string_view word = rest.substr(0, end);
    TROUPE_RETURN_IF_ERROR(CheckWord(word.size()));
    CutWord(word, out);
    rest.remove_prefix(word.size());
  }
  return OkStatus();
}

void UnigramTokenizer::CutWord(std::string_view word, std::vector<TokenId>& out) const {
  const TokenId unknown = *vocab().unk;  // Validate saw to it that there is one
  std::vector<Cut> cuts(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t character = ReadUtf8(word.substr(at)).length;
    const float before = cuts[at].score;
    bool has_character = false;
    const auto offer = [&](TokenId id, std::size_t length, float score) {
      Cut& cut = cuts[at + length];
      if (cut.id >= 0 && before + score <= cut.score) return;
      cut = {.score = before + score, .begin = static_cast<std::uint32_t>(at), .id = id};
    };
    (void)pieces_.LongestPrefix(word.substr(at), [&](TokenId id, std::size_t length) {
      offer(id, length, vocab().scores[static_cast<std::size_t>(id)]);
      has_character = has_character || length == character;
      return false;  // all are looked at
    });
    if (!has_character) offer(unknown, character, unknown_score_);
    at += character;
  }
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (std::size_t at = word.size(); at > 0; at = cuts[at].begin) {
    const bool goes_on = static_cast<std::ptrdiff_t>(out.size()) > first && out.back() == unknown;
    if (cuts[at].id != unknown || !goes_on) out.push_back(cuts[at].id);
  }
  std::reverse(out.begin() + first, out.end());
}

}  // namespace troupe
