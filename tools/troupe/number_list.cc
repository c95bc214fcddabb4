#include "troupe/number_list.h"

#include <charconv>

namespace troupe {

Result<std::vector<std::uint32_t>> ParseNumberList(const std::string& option,
                                                   const std::string& text) {
  constexpr std::uint32_t kMost = 1 << 16;
  std::vector<std::uint32_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto bad = [&] {
    return InvalidArgument("{}: '{}', expected numbers and ranges as 1-3,7", option, text);
  };
  while (at != end) {
    std::uint32_t first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first > kMost) return bad();
    std::uint32_t last = first;
    if (next != end && *next == '-') {
      const auto range = std::from_chars(next + 1, end, last);
      if (range.ec != std::errc() || last < first || last > kMost) return bad();
      next = range.ptr;
    }
    if (next != end && (*next != ',' || next + 1 == end)) return bad();
    at = next == end ? end : next + 1;
    for (std::uint32_t n = first; n <= last; ++n) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace troupe
