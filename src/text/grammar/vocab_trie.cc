#include "text/grammar/vocab_trie.h"

#include <algorithm>
#include <utility>

namespace troupe {

VocabTrie::VocabTrie(std::span<const std::string_view> texts, TokenSet end_tokens, TokenSet marks)
    : end_tokens_(std::move(end_tokens)), marks_(std::move(marks)) {
  std::vector<TokenId> sorted;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) sorted.push_back(static_cast<TokenId>(i));
    longest_token_ = std::max(longest_token_, texts[i].size());
    text_begins_.push_back(texts_.size());
    texts_ += texts[i];
  }
  text_begins_.push_back(texts_.size());
  const auto text_of = [&](TokenId id) { return texts[static_cast<std::size_t>(id)]; };
  std::ranges::stable_sort(sorted, {}, text_of);
  std::vector<std::uint32_t> path;  // the nodes that lead to the last text
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
    }
  };
  std::string_view last;
  for (const TokenId id : sorted) {
    const std::string_view text = text_of(id);
    close(static_cast<std::size_t>(std::ranges::mismatch(last, text).in1 - last.begin()));
    while (path.size() < text.size()) {
      const auto byte = static_cast<std::uint8_t>(text[path.size()]);
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.first_token = static_cast<std::uint32_t>(tokens_.size()), .byte = byte});
    }
    tokens_.push_back(id);
    last = text;
  }
  close(0);
  nodes_.push_back({.first_token = static_cast<std::uint32_t>(tokens_.size())});
}

std::shared_ptr<const VocabTrie> MakeVocabTrie(const Tokenizer& tokenizer,
                                               std::span<const TokenId> marks) {
  std::vector<std::string_view> texts(tokenizer.size());
  TokenSet ends(tokenizer.size()), shown(tokenizer.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!tokenizer.IsSpecial(id)) texts[i] = tokenizer.TokenBytes(id);
    if (tokenizer.IsEndOfGeneration(id)) ends.Insert(id);
  }
  for (const TokenId id : marks) {
    if (!tokenizer.IsSpecial(id) || tokenizer.IsEndOfGeneration(id)) continue;
    texts[static_cast<std::size_t>(id)] = tokenizer.TokenBytes(id);
    shown.Insert(id);
  }
  return std::make_shared<const VocabTrie>(texts, std::move(ends), std::move(shown));
}

}  // namespace troupe
