#include "text/draft/grammar_drafter.h"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {
namespace {

// The node below `at`, or among the roots, that goes on with this byte.
std::optional<std::uint32_t> Child(const VocabTrie& trie, std::uint32_t begin, std::uint32_t end,
                                   std::uint8_t byte) {
  for (std::uint32_t node = begin; node < end; node = trie.node(node).end) {
    if (trie.node(node).byte == byte) return node;
  }
  return std::nullopt;
}

struct Found {
  TokenId token = 0;
  std::size_t length = 0;  // 0: there is none
};

Found LongestToken(const VocabTrie& trie, std::string_view text) {
  Found longest;
  std::uint32_t begin = 0, end = trie.size();
  for (std::size_t length = 1; length <= text.size(); ++length) {
    const auto node = Child(trie, begin, end, static_cast<std::uint8_t>(text[length - 1]));
    if (!node) break;
    for (const TokenId token : trie.TokensAt(*node)) {
      if (trie.marks().Has(token)) continue;
      longest = {.token = token, .length = length};
      break;
    }
    begin = *node + 1;
    end = trie.node(*node).end;
  }
  return longest;
}

}  // namespace

Draft GrammarDrafter::Propose(std::size_t most) {
  const VocabTrie& trie = constraint_->vocab();
  constexpr std::size_t kBytesAToken = 16;
  const std::string forced = constraint_->ForcedText(most * kBytesAToken);
  Draft draft;
  std::string_view left = forced;
  while (draft.tokens.size() < most) {
    const Found found = LongestToken(trie, left);
    // A token that reaches the end of what is known may be a longer one in truth.
    if (found.length == 0 || found.length == left.size()) break;
    draft.tokens.push_back(found.token);
    left.remove_prefix(found.length);
  }
  draft.evidence = forced.size() - left.size();
  return draft;
}

}  // namespace troupe
