#include "text/tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "text/byte_level_bpe.h"
#include "text/end_tokens.h"
#include "text/fill_in.h"
#include "text/pre_tokenizer.h"
#include "text/sentence_piece.h"
#include "text/unigram.h"
#include "text/utf8.h"

namespace troupe {
namespace {

// Positions in a text have 32 bits, and replacing blanks may triple its length.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

Status CheckText(std::string_view text, std::string_view name) {
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument("{}: {} bytes, at most {} allowed", name, text.size(), kMaxTextBytes);
  }
  if (const auto at = FindInvalidUtf8(text); at.has_value()) {
    return InvalidArgument("{}: byte {} is 0x{:02X}, which is not valid UTF-8 there", name, *at,
                           static_cast<unsigned char>(text[*at]));
  }
  return OkStatus();
}

bool IsBlanksOrOneCharacter(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  return std::all_of(text.begin(), text.end(), is_blank) || ReadUtf8(text).length == text.size();
}

}  // namespace

Tokenizer::Tokenizer(Vocab vocab) : vocab_(std::move(vocab)) {
  if (vocab_.types.empty()) vocab_.types.assign(size(), TokenType::kNormal);
  if (vocab_.model != TokenizerModel::kSentencePiece && vocab_.model != TokenizerModel::kUnigram) {
    vocab_.add_space_prefix = false;
  }
  ends_generation_ = FindEndTokens(vocab_);
  fill_in_marks_ = FindFillInMarks(vocab_);
  for (std::size_t i = 0; i < size(); ++i) {
    // Some files give these tokens the normal type; a user's text could then end an answer early.
    if (ends_generation_[i]) vocab_.types[i] = TokenType::kControl;
    // Text that is cut at special tokens must stay valid UTF-8.
    const std::string& token = vocab_.tokens[i];
    if (!IsText(vocab_.types[i]) && !FindInvalidUtf8(token).has_value()) {
      specials_.Insert(token, static_cast<TokenId>(i));
    }
  }
}

void Tokenizer::SetTokenBytes(std::vector<std::string> bytes) {
  TROUPE_CHECK(bytes.size() == size());
  bytes_ = std::move(bytes);
  for (const std::string& token : bytes_) longest_token_ = std::max(longest_token_, token.size());
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  TROUPE_RETURN_IF_ERROR(CheckText(text, "text"));
  const Run run = {
      .end = text.size(), .finds_control = options.parse_special, .finds_user_defined = true};
  return EncodeRuns(text, {&run, 1}, options.add_special);
}

Result<std::vector<TokenId>> Tokenizer::EncodeSegments(std::span<const TextSegment> segments,
                                                       bool add_special) const {
  std::string text;
  std::vector<Run> runs;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckText(segments[i].text, fmt::format("segment {}", i)));
    text += segments[i].text;
    runs.push_back({.end = text.size(),
                    .finds_control = segments[i].is_template,
                    .finds_user_defined = segments[i].is_template});
  }
  TROUPE_RETURN_IF_ERROR(CheckText(text, "all segments together"));
  return EncodeRuns(text, runs, add_special);
}

// One pass from left to right: at each place the longest special token that the run there allows is
// cut out, and the text before it is encoded when it is found.
Result<std::vector<TokenId>> Tokenizer::EncodeRuns(std::string_view text, std::span<const Run> runs,
                                                   bool add_special) const {
  std::vector<TokenId> ids;
  if (add_special && vocab_.add_bos) ids.push_back(*vocab_.bos);
  std::size_t done = 0;
  bool begins_text = true;
  const auto encode_up_to = [&](std::size_t end) {
    if (end == done) return OkStatus();
    Status status = EncodeText(text.substr(done, end - done), begins_text, ids);
    begins_text = false;
    return status;
  };
  auto run = runs.begin();
  for (std::size_t at = specials_.empty() ? text.size() : 0; at < text.size();) {
    while (run->end <= at) ++run;
    const auto special = specials_.LongestPrefix(
        text.substr(at),
        [&](TokenId id, std::size_t length) { return MayFind(id, at + length, *run); });
    if (!special.has_value()) {
      ++at;
      continue;
    }
    TROUPE_RETURN_IF_ERROR(encode_up_to(at));
    ids.push_back(special->id);
    at += special->length;
    done = at;
    begins_text = true;
  }
  TROUPE_RETURN_IF_ERROR(encode_up_to(text.size()));
  if (add_special && vocab_.add_eos) ids.push_back(*vocab_.eos);
  if (add_special && vocab_.decoder_start) ids.push_back(*vocab_.decoder_start);
  return ids;
}

Status Tokenizer::CheckWord(std::size_t bytes) const {
  if (bytes <= most_word_) return OkStatus();
  return InvalidArgument(
      "a word of more than {} bytes, expected blanks between shorter ones: its tokens are found in "
      "memory that is set aside by the context's length",
      most_word_);
}

bool Tokenizer::MayFind(TokenId id, std::size_t end, const Run& run) const {
  if (IsSpecial(id)) return run.finds_control && end <= run.end;
  return (run.finds_user_defined && end <= run.end) || IsBlanksOrOneCharacter(TokenBytes(id));
}

Result<std::string> Tokenizer::Decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string text;
  bool drops_blank = options.at_start;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!Contains(ids[i])) {
      return InvalidArgument("token {} has id {}, but there are {} tokens", i, ids[i], size());
    }
    text += NextBytes(ids[i], options.keep_special, drops_blank);
  }
  return text;
}

std::string_view Tokenizer::NextBytes(TokenId id, bool keep_special, bool& drops_blank) const {
  std::string_view bytes = TokenBytes(id);
  if (!IsText(vocab_.TypeOf(id))) {
    drops_blank = true;  // after a special token Encode starts a new text
    return IsSpecial(id) && !keep_special ? std::string_view() : bytes;
  }
  if (drops_blank && vocab_.add_space_prefix && bytes.starts_with(' ')) bytes.remove_prefix(1);
  drops_blank = false;
  return bytes;
}

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  TROUPE_CHECK(Contains(id));
  return bytes_[static_cast<std::size_t>(id)];
}

bool Tokenizer::IsSpecial(TokenId id) const {
  TROUPE_CHECK(Contains(id));
  const TokenType type = vocab_.TypeOf(id);
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

bool Tokenizer::IsEndOfGeneration(TokenId id) const {
  TROUPE_CHECK(Contains(id));
  return ends_generation_[static_cast<std::size_t>(id)];
}

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocab vocab) {
  TROUPE_RETURN_IF_ERROR(vocab.Validate());
  if (vocab.model == TokenizerModel::kUnigram) {
    Result<CharMap> map = CharMap::Make(vocab.character_map);
    if (!map.ok()) return Status(map.status()).WithContext(vocab.origin);
    return std::unique_ptr<Tokenizer>(
        std::make_unique<UnigramTokenizer>(std::move(vocab), std::move(map).value()));
  }
  if (vocab.model != TokenizerModel::kByteLevelBpe) {
    return std::unique_ptr<Tokenizer>(std::make_unique<SentencePieceTokenizer>(std::move(vocab)));
  }
  if (vocab.pre.empty()) {
    LogWarning("{}: names no pre-tokenizer; 'default' may cut text otherwise than in training",
               vocab.origin);
    vocab.pre = "default";
  }
  Result<PreTokenizer> pre_tokenizer = PreTokenizer::Make(vocab.pre);
  if (!pre_tokenizer.ok()) return Status(pre_tokenizer.status()).WithContext(vocab.origin);
  return std::unique_ptr<Tokenizer>(
      std::make_unique<ByteLevelBpeTokenizer>(std::move(vocab), std::move(pre_tokenizer).value()));
}

}  // namespace troupe
