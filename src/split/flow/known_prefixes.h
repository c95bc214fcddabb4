// How the texts begin that a place has answered last, and so has in its prefix cache, as far as who
// asks it can know: of a text that begins alike only the rest is read there. Hashes of whole tiles
// of tokens, each of all before it as well: of bounded memory, and nobody's words. What a cache has
// given up since, only the place itself knows. Pure. Design: docs/design/end-cloud.md.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

class KnownPrefixes {
 public:
  // The cache finds texts to the token; its tiles have as many (KvLayout::kTile).
  static constexpr std::size_t kTile = 16;
  // What clients go on with is among the last few dozen; 128 KiB of hashes at most.
  static constexpr std::size_t kMostTexts = 48, kMostTiles = std::size_t{1} << 14;

  // The place has read all of it. Texts of another salt find nothing of it.
  void Remember(std::string_view salt, std::span<const TokenId> text);
  // Its first tokens that are there, in whole tiles; never the last one, which is always read.
  std::size_t Kept(std::string_view salt, std::span<const TokenId> text) const;
  // The place has begun anew, or has given up a part of it.
  void Forget() { texts_.clear(), tiles_ = 0; }

  std::size_t texts() const { return texts_.size(); }
  std::size_t tiles() const { return tiles_; }

 private:
  std::list<std::vector<std::uint64_t>> texts_;  // the newest first; none begins as another one
  std::size_t tiles_ = 0;                        // of all
};

}  // namespace troupe
