// Vocabularies of a few hundred tokens, one of each kind, for tests and fuzzing: small enough
// to work out by hand what a text becomes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "text/byte_characters.h"
#include "text/vocab.h"

namespace troupe {

// <unk> 0, <s> 1, </s> 2, bytes 3 to 258, then pieces from 259 on, each worse than the one before.
inline Vocab TinySentencePieceVocab() {
  Vocab vocab;
  vocab.model = TokenizerModel::kSentencePiece;
  const auto add = [&vocab](std::string text, TokenType type) {
    const auto id = static_cast<TokenId>(vocab.tokens.size());
    vocab.tokens.push_back(std::move(text));
    vocab.scores.push_back(static_cast<float>(-id));
    vocab.types.push_back(type);
    return id;
  };
  vocab.unk = add("<unk>", TokenType::kUnknown);
  vocab.bos = add("<s>", TokenType::kControl);
  vocab.eos = add("</s>", TokenType::kControl);
  for (int b = 0; b < 256; ++b) {
    add(ByteTokenText(static_cast<std::uint8_t>(b)), TokenType::kByte);
  }
  for (const std::string_view piece : {"▁a", "he", "ll", "hell", "hello", "▁hello", "▁▁", "ab",
                                       "bc", "é", "▁", "a", "b", "c", "e", "h", "l", "o"}) {
    add(std::string(piece), TokenType::kNormal);
  }
  add("<tool>", TokenType::kUserDefined);
  add("<|im_end|>", TokenType::kNormal);  // as files have it that forget what it is
  vocab.add_bos = true;
  vocab.add_space_prefix = true;
  return vocab;
}

// The same pieces joined by rank, in another order than their scores, and line ends that are
// tokens.
inline Vocab TinyRankedVocab() {
  Vocab vocab = TinySentencePieceVocab();
  vocab.model = TokenizerModel::kRankedPieces;
  vocab.add_space_prefix = false;
  for (const char* ends : {"\n\n", "\n"}) {
    vocab.tokens.emplace_back(ends);
    vocab.scores.push_back(0);
    vocab.types.push_back(TokenType::kNormal);
  }
  vocab.merges = {"b c", "a b", "h e", "l l", "he ll", "hell o", "▁ hello", "▁ a"};
  return vocab;
}

// As T5's: <pad> 0, </s> 1, <unk> 2, pieces with scores, two tokens that mark gaps.
inline Vocab TinyUnigramVocab() {
  Vocab vocab;
  vocab.model = TokenizerModel::kUnigram;
  const auto add = [&vocab](std::string text, float score, TokenType type) {
    vocab.tokens.push_back(std::move(text));
    vocab.scores.push_back(score);
    vocab.types.push_back(type);
    return static_cast<TokenId>(vocab.tokens.size() - 1);
  };
  vocab.pad = add("<pad>", 0, TokenType::kControl);
  vocab.eos = add("</s>", 0, TokenType::kControl);
  vocab.unk = add("<unk>", 0, TokenType::kUnknown);
  const std::initializer_list<std::pair<std::string_view, float>> pieces = {
      {"▁", -1}, {"▁hello", -2}, {"ab", -4}, {"bc", -3}, {"he", -6}, {"a", -5}, {"b", -6},
      {"c", -3}, {"h", -7},      {"e", -7},  {"l", -7},  {"o", -7},  {"é", -8}};
  for (const auto& [piece, score] : pieces) add(std::string(piece), score, TokenType::kNormal);
  add("<extra_id_1>", 0, TokenType::kUserDefined);
  add("<extra_id_0>", 0, TokenType::kUserDefined);
  vocab.add_eos = true;
  vocab.decoder_start = vocab.pad;
  vocab.add_space_prefix = true;
  vocab.removes_blanks = true;
  return vocab;
}

// Bytes 0 to 255, what merges make from 256 on, then <|endoftext|>, <tool> and two blanks.
inline Vocab TinyByteLevelVocab(std::string pre = "gpt-2") {
  Vocab vocab;
  vocab.model = TokenizerModel::kByteLevelBpe;
  vocab.pre = std::move(pre);
  for (int b = 0; b < 256; ++b) {
    vocab.tokens.emplace_back(CharacterOfByte(static_cast<std::uint8_t>(b)));
  }
  const std::initializer_list<std::pair<std::string_view, std::string_view>> merges = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "hello"},
      {"b", "c"}, {"a", "b"}, {" ", " "},   {"1", "2"},    {"\xC3", "\xA9"}};
  for (const auto& [left, right] : merges) {
    const std::string first = BytesToCharacters(left);
    const std::string second = BytesToCharacters(right);
    vocab.merges.push_back(first + " " + second);
    vocab.tokens.push_back(first + second);
  }
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  const auto add = [&vocab](std::string text, TokenType type) {
    vocab.tokens.push_back(std::move(text));
    vocab.types.push_back(type);
    return static_cast<TokenId>(vocab.tokens.size() - 1);
  };
  vocab.eos = add("<|endoftext|>", TokenType::kControl);
  vocab.bos = vocab.eos;
  add("<tool>", TokenType::kUserDefined);
  add("  ", TokenType::kUserDefined);
  return vocab;
}

}  // namespace troupe
