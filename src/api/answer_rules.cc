#include "api/answer_rules.h"

#include "base/json.h"
#include "text/grammar/automaton.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/json_schema.h"

namespace troupe {
namespace {

constexpr std::size_t kMostKept = 4;
constexpr TokenMaskLimits kLimits = {.kept = 4_MiB, .states_kept = 2048, .states_at_most = 16384};
constexpr Bytes kBytesOfOne = kLimits.kept + 4_MiB;  // and its automaton and states
constexpr std::uint64_t kBytesOfToken = 96;          // in the tree of all of them

}  // namespace

Result<Grammar> GrammarOf(const AnswerRule& rule) {
  switch (rule.kind) {
    case AnswerRule::Kind::kJsonObject:
      return JsonObjectGrammar();
    case AnswerRule::Kind::kGrammar: {
      Result<Grammar> grammar = ParseGbnf(rule.text);
      if (!grammar.ok()) return Status(grammar.status()).WithContext("grammar");
      return grammar;
    }
    case AnswerRule::Kind::kJsonSchema: {
      Json::Fault fault;
      const std::optional<Json> schema = Json::Parse(rule.text, &fault);
      if (!schema) return InvalidArgument("schema: {}", fault.message);
      Result<Grammar> grammar = CompileJsonSchema(*schema);
      if (!grammar.ok()) return Status(grammar.status()).WithContext("schema");
      return grammar;
    }
  }
  TROUPE_CHECK(false);
}

Bytes AnswerRules::MostBytes(std::size_t vocabulary, std::uint32_t requests) {
  return Bytes(vocabulary * kBytesOfToken) + (kMostKept + requests) * kBytesOfOne;
}

Result<std::shared_ptr<TokenConstraint>> AnswerRules::For(const AnswerRule& rule,
                                                          bool shows_marks) {
  {
    const MutexLock lock(mu_);
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (at->first != rule) continue;
      kept_.splice(kept_.begin(), kept_, at);
      return std::make_shared<TokenConstraint>(kept_.front().second, shows_marks);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Grammar grammar, GrammarOf(rule));
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const Automaton> automaton, Automaton::Compile(grammar));
  auto masks = std::make_shared<TokenMasks>(std::move(automaton), vocab_, kLimits);
  const MutexLock lock(mu_);
  kept_.emplace_front(rule, masks);
  if (kept_.size() > kMostKept) kept_.pop_back();
  return std::make_shared<TokenConstraint>(std::move(masks), shows_marks);
}

}  // namespace troupe
