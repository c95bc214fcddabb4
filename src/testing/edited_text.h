// A good text with one place changed, for tests of what is read. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace troupe {

// `text` with the first `from` replaced, which has to be in it: an edit that changes nothing would
// prove nothing.
inline std::string Edited(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace troupe
