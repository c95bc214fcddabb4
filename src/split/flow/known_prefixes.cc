#include "split/flow/known_prefixes.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// FNV-1a, of whole tokens.
constexpr std::uint64_t kEmptyText = 0xcbf29ce484222325, kTimes = 0x100000001b3;

std::uint64_t MixedWith(std::uint64_t hash, std::uint64_t more) { return (hash ^ more) * kTimes; }

// Multiplying carries upwards only: the high bits, which have seen all, go into the low ones.
std::uint64_t TileHash(std::uint64_t hash) { return hash ^ (hash >> 32); }

std::vector<std::uint64_t> HashesOf(std::string_view salt, std::span<const TokenId> text) {
  std::uint64_t hash = MixedWith(kEmptyText, salt.size());
  for (const char c : salt) hash = MixedWith(hash, static_cast<unsigned char>(c));
  const std::size_t tiles = std::min(text.size() / KnownPrefixes::kTile, KnownPrefixes::kMostTiles);
  std::vector<std::uint64_t> hashes;
  hashes.reserve(tiles);
  for (std::size_t i = 0; i < tiles * KnownPrefixes::kTile; ++i) {
    hash = MixedWith(hash, static_cast<std::uint64_t>(text[i]));
    if ((i + 1) % KnownPrefixes::kTile > 0) continue;
    hash = TileHash(hash);
    hashes.push_back(hash);
  }
  return hashes;
}

bool BeginsAs(const std::vector<std::uint64_t>& text, const std::vector<std::uint64_t>& prefix) {
  return prefix.size() <= text.size() && text[prefix.size() - 1] == prefix.back();
}

}  // namespace

void KnownPrefixes::Remember(std::string_view salt, std::span<const TokenId> text) {
  std::vector<std::uint64_t> hashes = HashesOf(salt, text);
  if (hashes.empty()) return;
  for (auto other = texts_.begin(); other != texts_.end(); ++other) {
    if (!BeginsAs(*other, hashes)) continue;
    return texts_.splice(texts_.begin(), texts_, other);
  }
  // A chat's earlier turns are in its last one.
  std::erase_if(texts_, [&](const auto& other) {
    const bool is_in_it = BeginsAs(hashes, other);
    if (is_in_it) tiles_ -= other.size();
    return is_in_it;
  });
  tiles_ += hashes.size();
  texts_.push_front(std::move(hashes));
  while (texts_.size() > kMostTexts || tiles_ > kMostTiles) {
    tiles_ -= texts_.back().size();
    texts_.pop_back();
  }
}

std::size_t KnownPrefixes::Kept(std::string_view salt, std::span<const TokenId> text) const {
  if (text.empty() || texts_.empty()) return 0;
  const std::vector<std::uint64_t> hashes = HashesOf(salt, text.first(text.size() - 1));
  std::ptrdiff_t most = 0;
  for (const auto& other : texts_) {
    const auto differ = std::ranges::mismatch(hashes, other).in1;
    most = std::max(most, differ - hashes.begin());
  }
  return static_cast<std::size_t>(most) * kTile;
}

}  // namespace troupe
