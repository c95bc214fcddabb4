// Which bytes of a load can be gone through already: its pieces come in any order, and a checksum
// takes them in the order of the file. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace troupe {

class ArrivalOrder {
 public:
  struct Stretch {
    std::size_t part = 0;
    std::uint64_t begin = 0, bytes = 0;  // within the part

    bool operator==(const Stretch&) const = default;
  };

  // The next piece in the order of the file brings the bytes of this part up to there. Its number.
  std::size_t Expect(std::size_t part, std::uint64_t upto) {
    TROUPE_DCHECK(pieces_.empty() || pieces_.back().part < part || pieces_.back().upto < upto);
    pieces_.push_back({.part = part, .upto = upto});
    return pieces_.size() - 1;
  }

  void OnCame(std::size_t number) { pieces_[number].came = true; }

  // Whether the bytes of the first part up to there have come, whatever was taken of them.
  bool HasCome(std::uint64_t upto) const {
    for (const Piece& piece : pieces_) {
      if (piece.part > 0 || !piece.came) return false;
      if (piece.upto >= upto) return true;
    }
    return false;
  }

  // Whether the next bytes in order have come.
  bool HasMore() const { return next_ < pieces_.size() && pieces_[next_].came; }

  // The next bytes in order that have come and were not taken yet: `most` at most, of one piece.
  Stretch Take(std::uint64_t most) {
    TROUPE_CHECK(HasMore() && most > 0);
    const Piece& piece = pieces_[next_];
    const Stretch stretch{piece.part, taken_, std::min(most, piece.upto - taken_)};
    taken_ += stretch.bytes;
    if (taken_ == piece.upto && ++next_ < pieces_.size() && pieces_[next_].part != piece.part) {
      taken_ = 0;
    }
    return stretch;
  }

 private:
  struct Piece {
    std::size_t part = 0;
    std::uint64_t upto = 0;
    bool came = false;
  };

  std::vector<Piece> pieces_;
  std::size_t next_ = 0;     // the piece whose bytes are next
  std::uint64_t taken_ = 0;  // of its part
};

}  // namespace troupe
