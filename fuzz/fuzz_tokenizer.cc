// Any bytes through all kinds of tokenizer, whole, as segments and through the stream decoder:
// text that is not UTF-8 is refused, all other text comes back. The first byte of the input chooses
// the pre-tokenizer and where the text is divided; a last kind takes the text for a map of
// characters.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/char_map.h"
#include "text/stream_decoder.h"
#include "text/tiny_vocab_for_test.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace troupe {
namespace {

std::vector<std::unique_ptr<Tokenizer>> MakeTokenizers() {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(MakeTokenizer(TinySentencePieceVocab()).value());
  tokenizers.push_back(MakeTokenizer(TinyRankedVocab()).value());
  for (const char* pre :
       {"default", "gpt-2", "falcon", "starcoder", "llama-bpe", "qwen2", "qwen35", "bailingmoe",
        "gpt-4o", "tekken", "deepseek-llm", "deepseek-coder", "deepseek-v3"}) {
    tokenizers.push_back(MakeTokenizer(TinyByteLevelVocab(pre)).value());
  }
  return tokenizers;
}

std::string Stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, {.keep_special = true, .at_start = true});
  std::string text;
  for (const TokenId id : ids) text += decoder.Push(id);
  return text + decoder.Flush();
}

void CheckTextComesBack(const Tokenizer& tokenizer, std::string_view text, std::size_t cut) {
  const auto parsed = tokenizer.Encode(text, {.add_special = false, .parse_special = true});
  TROUPE_CHECK(parsed.ok() == !FindInvalidUtf8(text).has_value());
  if (!parsed.ok()) return;
  std::string expected(text);
  if (tokenizer.vocab().model !=
      TokenizerModel::kByteLevelBpe) {  // U+2581 is SentencePiece's blank
    constexpr std::string_view kBlank = "\u2581";
    for (std::size_t at = expected.find(kBlank); at != std::string::npos;
         at = expected.find(kBlank, at)) {
      expected.replace(at, kBlank.size(), " ");
    }
  }
  TROUPE_CHECK(tokenizer.Decode(*parsed, {.keep_special = true}).value() == expected);
  TROUPE_CHECK(Stream(tokenizer, *parsed) == expected);

  const auto plain = tokenizer.Encode(text, {.add_special = false}).value();
  for (const TokenId id : plain) TROUPE_CHECK(!tokenizer.IsSpecial(id));
  const auto segments =
      tokenizer.EncodeSegments(std::vector<TextSegment>{{std::string(text.substr(0, cut)), true},
                                                        {std::string(text.substr(cut)), false}},
                               false);
  if (!segments.ok()) return;  // the cut divides a character
  TROUPE_CHECK(tokenizer.Decode(*segments, {.keep_special = true}).value() == expected);
}

// Whatever it is compiled from: whole characters become valid text.
void CheckCharMap(std::string_view compiled) {
  const Result<CharMap> map = CharMap::Make(compiled);
  if (!map.ok()) return;
  for (const std::string_view text : {"a", "ab\u00E9", "\u65E5\u672C", "\uFB01\n"}) {
    const CharMap::Match match = map->Longest(text);
    TROUPE_CHECK(match.length <= text.size());
    TROUPE_CHECK(!FindInvalidUtf8(text.substr(match.length)).has_value());
    TROUPE_CHECK(!FindInvalidUtf8(match.to).has_value());
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto tokenizers = troupe::MakeTokenizers();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t kind = data[0] % (tokenizers.size() + 1);
  if (kind == tokenizers.size()) return troupe::CheckCharMap(text), 0;
  const troupe::Tokenizer& tokenizer = *tokenizers[kind];
  troupe::CheckTextComesBack(tokenizer, text, text.empty() ? 0 : data[0] % text.size());
  return 0;
}
