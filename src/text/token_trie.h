// Finds the longest of a set of texts that begins at a place: special tokens in a prompt. One pass
// over the text whatever the number of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocab.h"

namespace troupe {

class TokenTrie {
 public:
  // Empty texts are ignored: they would match everywhere.
  void Insert(std::string_view text, TokenId id);

  struct Match {
    TokenId id;
    std::size_t length;
  };
  // The longest text that `text` begins with among those that accept(id, length) agrees to.
  template <typename Accept>
  std::optional<Match> LongestPrefix(std::string_view text, Accept accept) const {
    std::optional<Match> best;
    const Node* node = &nodes_[0];
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = Child(*node, static_cast<std::uint8_t>(text[i]));
      if (node == nullptr) break;
      if (node->id.has_value() && accept(*node->id, i + 1)) best = Match{*node->id, i + 1};
    }
    return best;
  }

  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    std::optional<TokenId> id;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> children;  // sorted by byte
  };
  const Node* Child(const Node& node, std::uint8_t byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace troupe
