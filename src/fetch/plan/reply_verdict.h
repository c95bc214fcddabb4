// What the head of a reply means for a file of which some bytes may be here already: take what
// follows, begin anew, ask elsewhere, come again, or give up. Pure: download.h does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct ReplyHead {
  int status = 0;
  std::optional<std::uint64_t> length;  // Content-Length
  std::string range;                    // Content-Range, as it stands there
  std::string etag;
  std::string location;               // where a redirect leads, as a whole address
  std::optional<double> retry_after;  // seconds
};

struct RangeReply {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total;

  bool operator==(const RangeReply&) const = default;
};
// "bytes 5-9/10", "bytes 5-9/*"; nothing for others.
std::optional<RangeReply> ParseContentRange(std::string_view text);

// Of bytes that are asked for: which file, how large it is by its listing, and from where on.
struct AskedFor {
  std::string what;  // for errors: "hf.co/o/r: m.gguf"
  std::uint64_t bytes = 0;
  std::uint64_t from = 0;
  bool with_token = false;
};

struct ReplyVerdict {
  enum class Next {
    kAppend,     // what follows are the bytes from `from` on
    kFromStart,  // what follows is the whole file
    kAskWhole,   // the range is refused: ask for all of it
    kFollow,     // ask at ReplyHead::location
    kComeAgain,  // not now
    kGiveUp
  };
  Next next = Next::kGiveUp;
  Status why;  // of kComeAgain and kGiveUp
};
ReplyVerdict JudgeReply(const ReplyHead& head, const AskedFor& asked);

// For replies that are no files: listings and manifests. kFromStart, kFollow, kComeAgain, kGiveUp.
ReplyVerdict JudgeListing(const ReplyHead& head, std::string_view what, bool with_token);

// Whether an ETag proves the same bytes: weak ones do not.
bool IsStrongEtag(std::string_view etag);

// How often a file is asked for again: `most` times in a row without a byte more. A wait doubles
// from time to time, and a server may say how long to wait, but not longer than a minute.
class Patience {
 public:
  explicit Patience(int most) : most_(most) {}

  void Progressed() { failures_ = 0; }
  // Seconds to wait before the next try; nothing: it was the last.
  std::optional<double> AfterFailure(double retry_after = 0);
  int next_try() const { return failures_ + 1; }

 private:
  int most_;
  int failures_ = 0;
};

}  // namespace troupe
