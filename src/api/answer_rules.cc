#include "api/answer_rules.h"

#include <utility>

#include "base/json.h"
#include "text/grammar/answer_mask_limits.h"
#include "text/grammar/automaton.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/json_schema.h"

namespace troupe {
namespace {

constexpr std::uint64_t kBytesOfToken = 96;  // in the tree of all of them
constexpr Bytes kBytesBeside = 2_KiB;        // of a rule beside its text and automaton
constexpr double kRetrySeconds = 2;          // until a request that has a rule may have ended

// What errors about it begin with.
std::string NameOf(const AnswerRule& rule) {
  if (!rule.place.empty()) return rule.place;
  return rule.kind == AnswerRule::Kind::kGrammar ? "grammar" : "schema";
}

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
  constexpr AnswerRuleLimits kMost;
  return Bytes(vocabulary * kBytesOfToken) + kMost.rules + kMost.found + kMost.while_found +
         requests * kMost.each;
}

AnswerRules::AnswerRules(const Tokenizer& tokenizer, std::span<const TokenId> marks,
                         const AnswerRuleLimits& limits)
    : vocab_(MakeVocabTrie(tokenizer, marks)),
      limits_(limits),
      found_(std::make_shared<MaskMemory>(limits.found)) {}

std::shared_ptr<TokenMasks> AnswerRules::Find(const AnswerRule& rule) {
  for (auto at = compiled_.begin(); at != compiled_.end(); ++at) {
    if (at->rule != rule) continue;
    compiled_.splice(compiled_.begin(), compiled_, at);
    return compiled_.front().masks;
  }
  return nullptr;
}

bool AnswerRules::MakeRoom(Bytes size) {
  for (auto at = compiled_.end(); used_ + size > limits_.rules && at != compiled_.begin();) {
    --at;
    if (at->masks.use_count() > 1) continue;
    used_ -= at->size;
    at = compiled_.erase(at);
  }
  return used_ + size <= limits_.rules;
}

Result<std::shared_ptr<TokenConstraint>> AnswerRules::For(const AnswerRule& rule,
                                                          bool shows_marks) {
  {
    const MutexLock lock(mu_);
    if (auto known = Find(rule)) {
      return std::make_shared<TokenConstraint>(std::move(known), shows_marks, NameOf(rule));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Grammar grammar, GrammarOf(rule));
  const std::size_t most_nodes = limits_.rules.count() / sizeof(AutomatonNode);
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const Automaton> automaton,
                          Automaton::Compile(grammar, most_nodes));
  const Bytes size = automaton->bytes() + Bytes(rule.text.size()) + kBytesBeside;
  if (size > limits_.rules) {
    return InvalidArgument("a rule for the answer that takes {}, expected at most {}",
                           ToString(size), ToString(limits_.rules));
  }
  const MutexLock lock(mu_);
  std::shared_ptr<TokenMasks> masks = Find(rule);  // compiled by another thread meanwhile
  if (masks == nullptr) {
    if (!MakeRoom(size)) {
      return Error(Code::kUnavailable,
                   "a rule for the answer takes {}, and those of the requests under way {} of {}",
                   ToString(size), ToString(used_), ToString(limits_.rules))
          .WithRetryAfter(kRetrySeconds);
    }
    masks = std::make_shared<TokenMasks>(std::move(automaton), vocab_, kAnswerMaskLimits, found_);
    compiled_.push_front({.rule = rule, .masks = masks, .size = size});
    used_ += size;
  }
  return std::make_shared<TokenConstraint>(std::move(masks), shows_marks, NameOf(rule));
}

std::size_t AnswerRules::kept() const {
  const MutexLock lock(mu_);
  return compiled_.size();
}

Bytes AnswerRules::rule_bytes() const {
  const MutexLock lock(mu_);
  return used_;
}

}  // namespace troupe
