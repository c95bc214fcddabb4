#include "runtime/prefix_cache.h"

#include <algorithm>

namespace troupe {

PrefixCache::Step PrefixCache::Longest(const Nodes& nodes, TokenIds tokens) {
  Step longest;
  for (const std::unique_ptr<Node>& node : nodes) {
    const auto [mine, theirs] = std::ranges::mismatch(node->tokens, tokens);
    const auto common = static_cast<std::size_t>(mine - node->tokens.begin());
    if (common > longest.common) longest = {node.get(), common};
  }
  return longest;
}

std::size_t PrefixCache::Extend(KvSequence& sequence, TokenIds tokens, std::string_view salt,
                                bool takes) {
  const std::size_t page = pool_->page_positions(), before = sequence.length();
  ++clock_;
  const auto roots = roots_.find(salt);
  if (roots == roots_.end()) return 0;
  Nodes* nodes = &roots->second;
  for (std::size_t first = 0; first < tokens.size(); first += page) {
    const TokenIds rest = tokens.subspan(first, std::min(page, tokens.size() - first));
    const Step step = Longest(*nodes, rest);
    if (step.node == nullptr) break;
    step.node->used = clock_;
    const std::size_t known = first + step.common;
    const bool full = step.common == page;
    if (known > sequence.length()) {
      if (full) {
        sequence.Share(step.node->page);
      } else if (known <= sequence.capacity()) {
        sequence.Copy(step.node->page, known);
      } else if (takes && step.node->next.empty() && !step.node->page.shared()) {
        sequence.Take(std::move(step.node->page), known);
        std::erase_if(*nodes, [&](const auto& node) { return node.get() == step.node; });
        --pages_;
        ++changes_;
        ++counters_.taken;
      }
    }
    if (!full) break;
    nodes = &step.node->next;
  }
  if (takes) ForgetEmptySalts();
  return sequence.length() - before;
}

void PrefixCache::ForgetEmptySalts() {
  std::erase_if(roots_, [](const auto& roots) { return roots.second.empty(); });
}

std::size_t PrefixCache::KnownOf(TokenIds tokens, std::string_view salt) const {
  const std::size_t page = pool_->page_positions();
  const auto roots = roots_.find(salt);
  if (roots == roots_.end()) return 0;
  const Nodes* nodes = &roots->second;
  for (std::size_t first = 0; first < tokens.size(); first += page) {
    const Step step = Longest(*nodes, tokens.subspan(first, std::min(page, tokens.size() - first)));
    if (step.common < page) return first + step.common;
    nodes = &step.node->next;
  }
  return tokens.size();
}

void PrefixCache::Keep(KvSequence& sequence, TokenIds tokens, Keeping which,
                       std::string_view salt) {
  const std::size_t page = pool_->page_positions();
  ++clock_;
  if (tokens.size() < (which == Keeping::kFullPages ? page : 1)) return;
  Nodes* nodes = &roots_[std::string(salt)];
  for (std::size_t first = 0; first < tokens.size(); first += page) {
    const TokenIds held = tokens.subspan(first, std::min(page, tokens.size() - first));
    if (held.size() < page && which == Keeping::kFullPages) return;
    Step step = Longest(*nodes, held);
    if (step.node == nullptr || step.common < std::min(held.size(), step.node->tokens.size())) {
      nodes->push_back(std::make_unique<Node>(
          Node{.tokens = {held.begin(), held.end()}, .page = sequence.Page(first / page)}));
      step.node = nodes->back().get();
      ++pages_;
      ++changes_;
    } else if (step.node->tokens.size() < held.size()) {  // the same text, which has gone on
      step.node->tokens.assign(held.begin(), held.end());
      step.node->page = sequence.Page(first / page);
      ++changes_;
    }
    step.node->used = clock_;
    nodes = &step.node->next;
  }
}

void PrefixCache::FindOldest(Nodes& nodes, Place& oldest) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = *nodes[i];
    if (!node.next.empty()) {
      FindOldest(node.next, oldest);
    } else if (!node.page.shared() &&
               (oldest.nodes == nullptr || node.used < (*oldest.nodes)[oldest.at]->used)) {
      oldest = {&nodes, i};
    }
  }
}

std::size_t PrefixCache::GiveUp(std::size_t pages) {
  for (std::size_t given = 0; given < pages; ++given) {
    Place oldest;
    for (auto& [salt, roots] : roots_) FindOldest(roots, oldest);
    if (oldest.nodes == nullptr) return given;
    oldest.nodes->erase(oldest.nodes->begin() + static_cast<std::ptrdiff_t>(oldest.at));
    ForgetEmptySalts();
    --pages_;
    ++changes_;
    ++counters_.given_up;
  }
  return pages;
}

std::size_t PrefixCache::IdleIn(const Nodes& nodes) {
  std::size_t idle = 0;
  for (const std::unique_ptr<Node>& node : nodes) {
    idle += IdleIn(node->next) + (node->page.shared() ? 0 : 1);
  }
  return idle;
}

void PrefixCache::AddAll(const Nodes& nodes, std::size_t behind, std::vector<Kept>& all) {
  for (const std::unique_ptr<Node>& node : nodes) {
    const std::size_t at = all.size();
    all.push_back(
        {.behind = behind, .tokens = node->tokens, .page = &node->page, .used = node->used});
    AddAll(node->next, at, all);
  }
}

std::vector<PrefixCache::Kept> PrefixCache::All() const {
  std::vector<Kept> all;
  const auto roots = roots_.find("");
  if (roots != roots_.end()) AddAll(roots->second, Kept::kNone, all);
  return all;
}

void PrefixCache::Filling::Put(std::size_t behind, TokenIds tokens, KvPage page,
                               std::uint64_t used) {
  Nodes& nodes = behind == Kept::kNone ? cache_.roots_[""] : put_.at(behind)->next;
  nodes.push_back(std::make_unique<Node>(
      Node{.tokens = {tokens.begin(), tokens.end()}, .page = std::move(page), .used = used}));
  put_.push_back(nodes.back().get());
  ++cache_.pages_;
  ++cache_.changes_;
  cache_.clock_ = std::max(cache_.clock_, used);
}

std::size_t PrefixCache::Idle() const {
  std::size_t idle = 0;
  for (const auto& [salt, roots] : roots_) idle += IdleIn(roots);
  return idle;
}

}  // namespace troupe
