#include "runtime/vocab_loader.h"

#include <limits>
#include <string_view>
#include <utility>

#include "text/pre_tokenizer_rules.h"

namespace troupe {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";

Result<TokenizerModel> ReadModel(const Metadata& metadata, std::string_view origin) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view name, metadata.GetString(kModelKey));
  if (name == "llama") return TokenizerModel::kSentencePiece;
  if (name == "gpt2") return TokenizerModel::kByteLevelBpe;
  if (name == "gemma4") return TokenizerModel::kRankedPieces;
  if (name == "t5") return TokenizerModel::kUnigram;
  return Error(Code::kUnimplemented, "{}: {} is '{}', expected llama, gpt2, gemma4 or t5", origin,
               kModelKey, name);
}

Status ReadStrings(const Metadata& metadata, std::string_view key,
                   std::vector<std::string>& strings) {
  TROUPE_ASSIGN_OR_RETURN(const StringArray* array, metadata.GetStrings(key));
  strings.reserve(array->size());
  for (const std::string_view string : *array) strings.emplace_back(string);
  return OkStatus();
}

Status ReadTokens(const Metadata& metadata, Vocab& vocab) {
  TROUPE_RETURN_IF_ERROR(ReadStrings(metadata, "tokenizer.ggml.tokens", vocab.tokens));
  if (metadata.Find("tokenizer.ggml.scores") != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const auto scores, metadata.GetFloats("tokenizer.ggml.scores"));
    vocab.scores.assign(scores.begin(), scores.end());
  }
  if (metadata.Find("tokenizer.ggml.merges") != nullptr) {
    TROUPE_RETURN_IF_ERROR(ReadStrings(metadata, "tokenizer.ggml.merges", vocab.merges));
  }
  return OkStatus();
}

Status ReadTypes(const Metadata& metadata, Vocab& vocab) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (metadata.Find(kKey) == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const auto types, metadata.GetInts(kKey));
  vocab.types.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > static_cast<int>(TokenType::kByte)) {
      return InvalidArgument("{}: {}[{}] is {}, expected 0 to {}", vocab.origin, kKey, i, types[i],
                             static_cast<int>(TokenType::kByte));
    }
    // 0 is 'undefined'.
    vocab.types.push_back(types[i] == 0 ? TokenType::kNormal : static_cast<TokenType>(types[i]));
  }
  return OkStatus();
}

// A key that is there, or else the fallback if the vocabulary reaches so far.
Status ReadId(const Metadata& metadata, std::string_view key, std::optional<TokenId> fallback,
              const Vocab& vocab, std::optional<TokenId>& id) {
  const auto size = static_cast<std::int64_t>(vocab.tokens.size());
  if (metadata.Find(key) == nullptr) {
    if (fallback.has_value() && *fallback < size) id = fallback;
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t value, metadata.GetInt(key));
  if (value < 0 || value >= size) {
    return InvalidArgument("{}: {} is {}, but there are {} tokens", vocab.origin, key, value, size);
  }
  id = static_cast<TokenId>(value);
  return OkStatus();
}

Status ReadIds(const Metadata& metadata, Vocab& vocab) {
  // SentencePiece's trainer gives these ids unless told otherwise.
  const bool has_usual_ids = vocab.model == TokenizerModel::kSentencePiece;
  const auto usual = [&](TokenId id) { return has_usual_ids ? std::optional(id) : std::nullopt; };
  const struct {
    std::string_view key;
    std::optional<TokenId> fallback;
    std::optional<TokenId>& id;
  } fields[] = {{"tokenizer.ggml.unknown_token_id", usual(0), vocab.unk},
                {"tokenizer.ggml.bos_token_id", usual(1), vocab.bos},
                {"tokenizer.ggml.eos_token_id", usual(2), vocab.eos},
                {"tokenizer.ggml.eot_token_id", std::nullopt, vocab.eot},
                {"tokenizer.ggml.eom_token_id", std::nullopt, vocab.eom},
                {"tokenizer.ggml.padding_token_id", std::nullopt, vocab.pad},
                {"tokenizer.ggml.fim_pre_token_id", std::nullopt, vocab.fill_before},
                {"tokenizer.ggml.fim_suf_token_id", std::nullopt, vocab.fill_after},
                {"tokenizer.ggml.fim_mid_token_id", std::nullopt, vocab.fill_middle}};
  for (const auto& field : fields) {
    TROUPE_RETURN_IF_ERROR(ReadId(metadata, field.key, field.fallback, vocab, field.id));
  }
  return OkStatus();
}

// Of the unigram kind: what is done to a text before it is cut.
Status ReadNormalising(const Metadata& metadata, Vocab& vocab) {
  TROUPE_ASSIGN_OR_RETURN(vocab.removes_blanks,
                          metadata.GetBoolOr("tokenizer.ggml.remove_extra_whitespaces", true));
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  if (metadata.Find(kKey) == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const auto bytes, metadata.GetInts(kKey));
  vocab.character_map.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] < -128 || bytes[i] > 255) {
      return InvalidArgument("{}: {}[{}] is {}, expected a byte", vocab.origin, kKey, i, bytes[i]);
    }
    vocab.character_map += static_cast<char>(bytes[i]);
  }
  return OkStatus();
}

// An encoder-decoder's family says what its decoder begins with.
Status ReadDecoderStart(const Metadata& metadata, Vocab& vocab) {
  TROUPE_ASSIGN_OR_RETURN(const std::string_view family,
                          metadata.GetStringOr("general.architecture", ""));
  return ReadId(metadata, std::string(family) + ".decoder_start_token_id", std::nullopt, vocab,
                vocab.decoder_start);
}

Status ReadHabits(const Metadata& metadata, Vocab& vocab) {
  TROUPE_ASSIGN_OR_RETURN(vocab.pre, metadata.GetStringOr("tokenizer.ggml.pre", ""));
  const bool has_pieces =
      vocab.model == TokenizerModel::kSentencePiece || vocab.model == TokenizerModel::kUnigram;
  const PreTokenizerRule* rule = FindPreTokenizerRule(vocab.pre);
  const bool usually_adds_bos =
      vocab.model != TokenizerModel::kByteLevelBpe || (rule != nullptr && rule->adds_bos);
  TROUPE_ASSIGN_OR_RETURN(vocab.add_bos,
                          metadata.GetBoolOr("tokenizer.ggml.add_bos_token",
                                             usually_adds_bos && vocab.bos.has_value()));
  TROUPE_ASSIGN_OR_RETURN(vocab.add_eos, metadata.GetBoolOr("tokenizer.ggml.add_eos_token", false));
  TROUPE_ASSIGN_OR_RETURN(vocab.add_space_prefix,
                          metadata.GetBoolOr("tokenizer.ggml.add_space_prefix", has_pieces));
  if (vocab.model == TokenizerModel::kUnigram) {
    TROUPE_RETURN_IF_ERROR(ReadNormalising(metadata, vocab));
  }
  TROUPE_RETURN_IF_ERROR(ReadDecoderStart(metadata, vocab));
  TROUPE_ASSIGN_OR_RETURN(vocab.chat_template, metadata.GetStringOr("tokenizer.chat_template", ""));
  return OkStatus();
}

}  // namespace

Result<Vocab> LoadVocab(const Metadata& metadata, std::string origin) {
  Vocab vocab;
  vocab.origin = std::move(origin);
  TROUPE_ASSIGN_OR_RETURN(vocab.model, ReadModel(metadata, vocab.origin));
  TROUPE_RETURN_IF_ERROR(ReadTokens(metadata, vocab));
  TROUPE_RETURN_IF_ERROR(ReadTypes(metadata, vocab));
  TROUPE_RETURN_IF_ERROR(ReadIds(metadata, vocab));
  TROUPE_RETURN_IF_ERROR(ReadHabits(metadata, vocab));
  return vocab;
}

}  // namespace troupe
