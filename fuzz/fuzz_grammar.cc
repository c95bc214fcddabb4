// Any bytes as a JSON Schema, if they begin with '{', or as GBNF: both are refused or give a
// grammar that prints, reads back and compiles. The rest of the input, after a zero byte, is read
// as an answer, of which masks over a small vocabulary say exactly what may come next, whatever
// they were asked before. The limits are those of a server.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "text/grammar/answer_mask_limits.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/token_mask.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

constexpr std::size_t kLongestAnswer = 64;

Result<Grammar> Compile(bool is_schema, std::string_view text) {
  if (!is_schema) return ParseGbnf(text, {.repetitions = 1000});
  const auto schema = Json::Parse(text);
  if (!schema) return InvalidArgument("not JSON");
  return CompileJsonSchema(*schema);
}

void CheckMask(TokenMasks& masks, const Matcher& matcher) {
  const auto allowed = masks.Allowed(matcher);
  if (!allowed.ok()) return;
  for (std::size_t i = 0; i < allowed->vocabulary(); ++i) {
    const std::string_view text = masks.vocab()->TextOf(static_cast<TokenId>(i));
    Matcher copy = matcher;
    const auto accepted = copy.Accept(text);
    if (text.empty() || !accepted.ok()) continue;
    TROUPE_CHECK(allowed->Has(static_cast<TokenId>(i)) == *accepted);
  }
}

void CheckGrammar(bool is_schema, std::string_view text, std::string_view answer) {
  const auto grammar = Compile(is_schema, text);
  if (!grammar.ok()) return;
  TROUPE_CHECK(ParseGbnf(ToString(*grammar)).ok());
  const auto automaton = Automaton::Compile(*grammar, 100'000);
  if (!automaton.ok()) return;
  static const auto vocab = MakeVocabTrie(*MakeTokenizer(TinyByteLevelVocab()).value());
  TokenMasks masks(*automaton, vocab, kAnswerMaskLimits);
  Matcher matcher(*automaton, kAnswerMaskLimits.stacks);
  for (const char byte : answer.substr(0, kLongestAnswer)) {
    const auto accepted = matcher.Accept({&byte, 1});
    if (!accepted.ok() || !*accepted) break;
  }
  CheckMask(masks, matcher);
  TokenMasks fresh(*automaton, vocab, kAnswerMaskLimits);
  TROUPE_CHECK(fresh.Allowed(matcher).ok() == masks.Allowed(matcher).ok());
  const auto allowed = matcher.AllowedBytes();
  const auto is_done = matcher.IsDone();
  // An answer can always go on, or has ended.
  if (allowed.ok() && is_done.ok()) TROUPE_CHECK(allowed->any() || *is_done);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  troupe::CheckGrammar(data[0] == '{', input.substr(0, end),
                       input.substr(std::min(end + 1, input.size())));
  return 0;
}
