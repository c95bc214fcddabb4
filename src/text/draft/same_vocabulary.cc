#include "text/draft/same_vocabulary.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

std::string Shown(const std::optional<TokenId>& id) {
  return id ? fmt::format("token {}", *id) : "none";
}

}  // namespace

Status CheckSameVocabulary(const Vocab& model, const Vocab& draft) {
  const auto differ = [&](const std::string& how) {
    return InvalidArgument("{}: not the vocabulary of {}: {}", draft.origin, model.origin, how);
  };
  if (draft.tokens.size() != model.tokens.size()) {
    return differ(fmt::format("{} tokens, expected {}", draft.tokens.size(), model.tokens.size()));
  }
  using Special = std::optional<TokenId> Vocab::*;
  for (const auto& [name, id] : {std::pair<std::string_view, Special>{"begins a text", &Vocab::bos},
                                 {"ends a text", &Vocab::eos},
                                 {"ends a turn", &Vocab::eot},
                                 {"ends a message", &Vocab::eom}}) {
    if (draft.*id == model.*id) continue;
    return differ(
        fmt::format("what {} is {}, expected {}", name, Shown(draft.*id), Shown(model.*id)));
  }
  const auto [theirs, ours] = std::ranges::mismatch(draft.tokens, model.tokens);
  if (theirs == draft.tokens.end()) return OkStatus();
  return differ(fmt::format("token {} is {:?}, expected {:?}", theirs - draft.tokens.begin(),
                            *theirs, *ours));
}

}  // namespace troupe
