// Text to token ids and back. This class finds special tokens and adds BOS and EOS;
// sentence_piece.h, unigram.h and byte_level_bpe.h cut the text between them. Immutable once made,
// so any number of threads may use one.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/text_segment.h"
#include "text/token_trie.h"
#include "text/vocab.h"

namespace troupe {

struct EncodeOptions {
  bool add_special = true;     // BOS, EOS and the decoder's first, as the vocabulary asks for them
  bool parse_special = false;  // "<s>" in the text becomes the control token of that name
};

struct DecodeOptions {
  bool keep_special = false;  // control tokens give their names instead of nothing
  bool at_start = true;       // the ids begin a text: SentencePiece's leading blank is dropped
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Text must be valid UTF-8; the error names the first byte that is not. User-defined tokens are
  // always found, control tokens on request, at each place the longest.
  Result<std::vector<TokenId>> Encode(std::string_view text, EncodeOptions options = {}) const;

  // For prompts of several authors: control and user-defined tokens are found inside template
  // segments alone, except user-defined ones of blanks or of one character: they are text and mark
  // nothing. Apart from these cuts the segments are one text: words may cross from one to the next.
  Result<std::vector<TokenId>> EncodeSegments(std::span<const TextSegment> segments,
                                              bool add_special = true) const;

  // The inverse of Encode, but for what a unigram tokenizer normalises. Ids of one text give valid
  // UTF-8; any ids give bytes (stream_decoder.h makes them valid). Fails on an id outside the
  // vocabulary.
  Result<std::string> Decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // One step of Decode. drops_blank is true where a text begins; it goes from one step to the next.
  std::string_view NextBytes(TokenId id, bool keep_special, bool& drops_blank) const;

  // The bytes a token stands for, SentencePiece's blanks as blanks; a control token's name.
  std::string_view TokenBytes(TokenId id) const;

  bool Contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }
  bool IsSpecial(TokenId id) const;  // control or unknown: no text of its own
  bool IsEndOfGeneration(TokenId id) const;

  // Nothing: the model fills no gaps (fill_in.h).
  const std::optional<FillInMarks>& fill_in_marks() const { return fill_in_marks_; }

  // A word here is a stretch of text inside which tokens are joined: between two blanks, most
  // often. A longer one is refused, as it takes JoinBytes while it is joined. At first none is too
  // long. Before other threads use it.
  void LimitWords(std::size_t bytes) { most_word_ = bytes; }
  static constexpr Bytes JoinBytes(std::size_t word) { return Bytes(word) * 128; }

  std::size_t size() const { return vocab_.tokens.size(); }
  // Bytes of the longest token: n tokens stand for no more than n times as many.
  std::size_t longest_token() const { return longest_token_; }
  const Vocab& vocab() const { return vocab_; }  // types as used: end tokens are control tokens

 protected:
  explicit Tokenizer(Vocab vocab);

  Status CheckWord(std::size_t bytes) const;

  // Sets what TokenBytes returns; the subclass's constructor calls it once.
  void SetTokenBytes(std::vector<std::string> bytes);

 private:
  // Appends the tokens of a text without special tokens; begins_text: nothing but special tokens
  // stands before it.
  virtual Status EncodeText(std::string_view text, bool begins_text,
                            std::vector<TokenId>& out) const = 0;

  // A stretch of text under one rule for special tokens, from where the one before ends.
  struct Run {
    std::size_t end;
    bool finds_control;
    bool finds_user_defined;
  };
  Result<std::vector<TokenId>> EncodeRuns(std::string_view text, std::span<const Run> runs,
                                          bool add_special) const;
  bool MayFind(TokenId id, std::size_t end, const Run& run) const;

  Vocab vocab_;
  TokenTrie specials_;
  std::vector<std::string> bytes_;
  std::vector<bool> ends_generation_;
  std::optional<FillInMarks> fill_in_marks_;
  std::size_t longest_token_ = 0;
  std::size_t most_word_ = std::numeric_limits<std::size_t>::max();
};

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocab vocab);

}  // namespace troupe
