// The texts of all tokens of a vocabulary as one tree, in which token_mask.h finds the tokens that
// a grammar allows. Immutable; one serves all requests of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_set.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace troupe {

class VocabTrie {
 public:
  // Nodes lie in the order of a depth-first walk: the children of node i are in (i, end).
  struct Node {
    std::uint32_t end = 0;          // after the last node below this one
    std::uint32_t first_token = 0;  // the tokens that end here: up to the next node's first
    std::uint8_t byte = 0;
  };

  // The bytes of each token; those without bytes can never be allowed. `marks` are special tokens
  // that have bytes nevertheless: text of some answers alone (token_constraint.h).
  VocabTrie(std::span<const std::string_view> texts, TokenSet end_tokens)
      : VocabTrie(texts, end_tokens, TokenSet(end_tokens.vocabulary())) {}
  VocabTrie(std::span<const std::string_view> texts, TokenSet end_tokens, TokenSet marks);

  std::size_t vocabulary() const { return end_tokens_.vocabulary(); }
  const TokenSet& end_tokens() const { return end_tokens_; }
  const TokenSet& marks() const { return marks_; }
  std::size_t longest_token() const { return longest_token_; }
  std::string_view TextOf(TokenId token) const {
    const auto at = static_cast<std::size_t>(token);
    return std::string_view(texts_).substr(text_begins_[at],
                                           text_begins_[at + 1] - text_begins_[at]);
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }
  const Node& node(std::uint32_t i) const { return nodes_[i]; }
  std::span<const TokenId> TokensAt(std::uint32_t i) const {
    return std::span(tokens_).subspan(nodes_[i].first_token,
                                      nodes_[i + 1].first_token - nodes_[i].first_token);
  }

 private:
  std::vector<Node> nodes_;  // and one after the last
  std::vector<TokenId> tokens_;
  TokenSet end_tokens_;
  TokenSet marks_;
  std::size_t longest_token_ = 0;
  std::string texts_;                     // of all tokens, one after the other
  std::vector<std::size_t> text_begins_;  // by token, and the end of the last
};

// What each token adds to an answer; control and unknown tokens are no text, but for `marks`.
std::shared_ptr<const VocabTrie> MakeVocabTrie(const Tokenizer& tokenizer,
                                               std::span<const TokenId> marks = {});

}  // namespace troupe
