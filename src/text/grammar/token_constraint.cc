#include "text/grammar/token_constraint.h"

#include <string_view>
#include <utility>

namespace troupe {
namespace {

// Ways between cells, to find what is forced: a draft is not worth more.
constexpr std::uint64_t kMostWorkAhead = 30'000;

}  // namespace

TokenConstraint::TokenConstraint(std::shared_ptr<TokenMasks> masks, bool with_marks,
                                 std::string name)
    : masks_(std::move(masks)),
      matcher_(masks_->automaton(), masks_->limits().stacks),
      name_(std::move(name)),
      with_marks_(with_marks) {}

Result<const TokenSet*> TokenConstraint::Allowed() {
  if (allowed_is_known_) return &allowed_;
  TROUPE_ASSIGN_OR_RETURN(allowed_, Named(masks_->Allowed(matcher_)));
  if (!with_marks_) allowed_.RemoveAll(masks_->vocab()->marks());
  TROUPE_ASSIGN_OR_RETURN(const bool can_end, CanEnd());
  if (can_end) allowed_.InsertAll(masks_->vocab()->end_tokens());
  if (allowed_.Count() == 0) {
    return InvalidArgument("{}: the grammar asks for text of which the vocabulary has no token",
                           name_);
  }
  allowed_is_known_ = true;
  return &allowed_;
}

std::string TokenConstraint::ForcedText(std::size_t most) const {
  Matcher ahead = matcher_;
  std::string text;
  std::uint64_t work = 0;
  while (text.size() < most && work < kMostWorkAhead) {
    const Result<bool> can_end = ahead.CanEnd();
    if (!can_end.ok() || *can_end) break;
    const Result<std::bitset<256>> allowed = ahead.AllowedBytes();
    if (!allowed.ok() || allowed->count() != 1) break;
    const char byte = static_cast<char>(allowed->_Find_first());
    const Result<bool> taken = ahead.Accept({&byte, 1});
    if (!taken.ok() || !*taken) break;
    text.push_back(byte);
    work += ahead.pool().work();
  }
  return text;
}

Status TokenConstraint::Advance(TokenId token) {
  const VocabTrie& vocab = *masks_->vocab();
  if (token < 0 || static_cast<std::size_t>(token) >= vocab.vocabulary()) {
    return InvalidArgument("token {} of {}", token, vocab.vocabulary());
  }
  if (vocab.end_tokens().Has(token)) {
    TROUPE_ASSIGN_OR_RETURN(const bool can_end, CanEnd());
    if (can_end) return OkStatus();
    return InvalidArgument("token {} ends the answer before the grammar does", token);
  }
  const bool is_text = with_marks_ || !vocab.marks().Has(token);
  const std::string_view bytes = is_text ? vocab.TextOf(token) : std::string_view();
  TROUPE_ASSIGN_OR_RETURN(const bool fits, Named(matcher_.Accept(bytes)));
  if (!fits || bytes.empty()) return InvalidArgument("token {} does not fit the grammar", token);
  allowed_is_known_ = false;
  return OkStatus();
}

}  // namespace troupe
