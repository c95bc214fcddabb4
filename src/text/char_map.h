// SentencePiece's map of characters to how they are written before text is cut: compatibility forms
// to the usual ones, line ends to blanks. It comes with a vocabulary, compiled: a trie in a double
// array (Darts), and behind it the texts that its leaves point to, each ended by a zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

class CharMap {
 public:
  CharMap() = default;  // changes nothing

  // The bytes of a precompiled map; none: it changes nothing. Where a trie leads is checked as it
  // is walked, so that any bytes may be in it.
  static Result<CharMap> Make(std::string_view compiled);

  struct Match {
    std::size_t length = 0;  // bytes of the text; 0: it begins with nothing that is in the map
    std::string_view to = {};
  };
  // The longest beginning of a valid text that is in the map: some whole characters.
  Match Longest(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace troupe
