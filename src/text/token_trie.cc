#include "text/token_trie.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto kByByte = [](const auto& child, std::uint8_t byte) { return child.first < byte; };

}  // namespace

void TokenTrie::Insert(std::string_view text, TokenId id) {
  if (text.empty()) return;
  std::uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    auto& children = nodes_[at].children;
    const auto place = std::lower_bound(children.begin(), children.end(), byte, kByByte);
    if (place != children.end() && place->first == byte) {
      at = place->second;
      continue;
    }
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    children.emplace(place, byte, added);
    nodes_.emplace_back();  // moves the nodes: `children` is dead from here
    at = added;
  }
  nodes_[at].id = id;
}

const TokenTrie::Node* TokenTrie::Child(const Node& node, std::uint8_t byte) const {
  const auto place = std::lower_bound(node.children.begin(), node.children.end(), byte, kByByte);
  const bool found = place != node.children.end() && place->first == byte;
  return found ? &nodes_[place->second] : nullptr;
}

}  // namespace troupe
