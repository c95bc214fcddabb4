// A vocabulary as a model file states it, in plain fields, and the check that it can be used.
// runtime/vocab_loader.h loads it, tokenizer.h cuts text by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

using TokenId = std::int32_t;

enum class TokenizerModel {
  kSentencePiece,  // "llama": merges by score, blanks written as U+2581
  kRankedPieces,   // "gemma4": the same by rank of merges, within lines
  kUnigram,        // "t5": the pieces whose scores have the largest sum
  kByteLevelBpe,   // "gpt2": merges by rank inside words, bytes written as printable characters
};

// Numbered as GGUF numbers them.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  // text that is always one token
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte of a character that has no token
};

// Whether text may be cut into tokens of this type without asking for them by name.
constexpr bool IsText(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUnused || type == TokenType::kByte;
}

// What stands before a gap's text, before the text after it, and where the gap is filled.
struct FillInMarks {
  TokenId before, after, middle;

  bool operator==(const FillInMarks&) const = default;
};

struct Vocab {
  std::string origin = "vocabulary";  // what errors name: the path of the file
  TokenizerModel model = TokenizerModel::kSentencePiece;
  std::string pre;  // how byte-level BPE cuts words: "qwen2", "llama-bpe" (pre_tokenizer.h)

  std::vector<std::string> tokens;  // a token's place is its id
  std::vector<float> scores;        // SentencePiece, unigram: one a token; else unused
  std::vector<TokenType> types;     // one a token; empty: all are normal
  std::vector<std::string> merges;  // of models with ranks: "left right", best first

  std::optional<TokenId> bos, eos, eot, eom, unk, pad;
  std::optional<TokenId> fill_before, fill_after, fill_middle;  // marks around a gap (fill_in.h)
  bool add_bos = false;
  bool add_eos = false;
  // Of an encoder-decoder: a prompt ends with it, behind EOS.
  std::optional<TokenId> decoder_start;
  bool add_space_prefix = false;  // SentencePiece, unigram: text begins as if after a blank
  bool removes_blanks = false;    // unigram: runs of blanks become one, and those at the ends go
  std::string character_map;      // unigram: compiled (char_map.h); empty: none

  std::string chat_template;  // as the model's metadata has it (chat_template.h)

  TokenType TypeOf(TokenId id) const {
    return types.empty() ? TokenType::kNormal : types[static_cast<std::size_t>(id)];
  }

  // Whether a tokenizer can be built from it: counts agree, ids and merges name tokens, and bytes
  // that text must be able to fall back to have tokens, or there is an unknown token for them.
  Status Validate() const;
};

// "<0x0A>", the text of a SentencePiece byte token.
std::string ByteTokenText(std::uint8_t byte);

}  // namespace troupe
