#include "forge/synth_tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// GGUF's numbers for kinds of tokens.
constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5, kByte = 6;

// Merged in this order; every piece is made of two that stand before it. '_' is a blank.
constexpr std::string_view kPieces =
    "_t he in er _a re on at nd or en _s _o _w _c it is es ed ou an al ar ing st le "
    "_b _f _p _m _d _h _n _y _th _the _in _an _and _of _to _re _co _be _wh _st se ic ve ro io ion "
    "ent "
    "ti de ra ri li el un us ce ct om ch sh ll ow ly ur ir as id ad ay ol im am um ot et ut ith "
    "tion "
    "_is _it _he _on _for _as _we _you _ha _not _with _that";

constexpr std::string_view kBlank = "\xe2\x96\x81";  // U+2581, SentencePiece's visible blank

struct Tokens {
  StringArray texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  void Add(std::string_view text, std::int32_t type, float score = 0) {
    texts.Append(text);
    scores.push_back(score);
    types.push_back(type);
  }
};

std::string WithVisibleBlanks(std::string_view text) {
  std::string result;
  for (const char c : text) c == '_' ? result += kBlank : result += c;
  return result;
}

Tokens GeneratedTokens() {
  Tokens tokens;
  tokens.Add("<unk>", kUnknown);
  tokens.Add("<s>", kControl);
  tokens.Add("</s>", kControl);
  for (int byte = 0; byte < 256; ++byte) tokens.Add(fmt::format("<0x{:02X}>", byte), kByte);
  // Better scores merge first; single characters are never the result of a merge.
  float score = -1;
  std::string_view rest = kPieces;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), piece.size() + 1));
    tokens.Add(WithVisibleBlanks(piece), kNormal, score--);
  }
  tokens.Add(kBlank, kNormal, score--);
  for (char c = '!'; c <= '~'; ++c) tokens.Add(std::string_view(&c, 1), kNormal, score--);
  return tokens;
}

std::string UnusedText(std::size_t id) { return fmt::format("[UNUSED{}]", id); }

// Appends to the array of T under `key`, if it is there, until it has `size` elements.
template <typename T>
Status Pad(Metadata& metadata, std::string_view key, std::size_t size, T value) {
  const Value* found = metadata.Find(key);
  if (found == nullptr) return OkStatus();
  const Array* array = std::get_if<Array>(found);
  const auto* elements = array ? std::get_if<std::vector<T>>(&array->elements) : nullptr;
  if (elements == nullptr || elements->size() > size) {
    return metadata.BadValue(key, fmt::format("an array of up to {} numbers", size));
  }
  std::vector<T> padded = *elements;
  padded.resize(size, value);
  metadata.Set(std::string(key), Array{std::move(padded)});
  return OkStatus();
}

}  // namespace

Status AddGeneratedTokenizer(std::uint32_t vocabulary, Metadata& out) {
  Tokens tokens = GeneratedTokens();
  if (tokens.texts.size() > vocabulary) {
    return InvalidArgument("a vocabulary of {}, at least {} expected", vocabulary,
                           tokens.texts.size());
  }
  while (tokens.texts.size() < vocabulary) tokens.Add(UnusedText(tokens.texts.size()), kUnused);
  out.Set("tokenizer.ggml.model", "llama");
  out.Set("tokenizer.ggml.pre", "default");
  out.Set(std::string(kTokens), Array{std::move(tokens.texts)});
  out.Set(std::string(kScores), Array{std::move(tokens.scores)});
  out.Set(std::string(kTypes), Array{std::move(tokens.types)});
  out.Set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  out.Set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  out.Set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  out.Set("tokenizer.ggml.add_bos_token", true);
  out.Set("tokenizer.ggml.add_eos_token", false);
  return OkStatus();
}

Status AddTokenizerOf(const Metadata& from, std::uint32_t vocabulary, Metadata& out) {
  TROUPE_ASSIGN_OR_RETURN(const StringArray* tokens, from.GetStrings(kTokens));
  const std::size_t count = tokens->size();
  if (count > vocabulary) {
    return InvalidArgument("{}: {} tokens, at most the shape's vocabulary of {} expected",
                           from.origin(), count, vocabulary);
  }
  StringArray texts = *tokens;
  while (texts.size() < vocabulary) texts.Append(UnusedText(texts.size()));
  for (const Metadata::Entry& entry : from.entries()) {
    if (entry.key.starts_with("tokenizer.")) out.Set(entry.key, entry.value);
  }
  // Files that mark no token as unused have no types at all: the padding is what has one then.
  if (out.Find(kTypes) == nullptr) {
    out.Set(std::string(kTypes), Array{std::vector<std::int32_t>(count, kNormal)});
  }
  out.Set(std::string(kTokens), Array{std::move(texts)});
  TROUPE_RETURN_IF_ERROR(Pad<float>(out, kScores, vocabulary, -1e4f));
  return Pad<std::int32_t>(out, kTypes, vocabulary, kUnused);
}

}  // namespace troupe
