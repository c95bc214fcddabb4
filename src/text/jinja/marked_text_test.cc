#include "text/jinja/marked_text.h"

#include <gtest/gtest.h>

namespace troupe::jinja {
namespace {

using MarkedSegments = std::vector<TextSegment>;

TEST(MarkedText, JoinsRunsOfOneOrigin) {
  MarkedText text("ab");
  text.Append("c");
  EXPECT_FALSE(text.HasOutside());
  text.Append("de", Origin::kOutside);
  text.Append(MarkedText("f", Origin::kOutside));
  text.Append("g");
  EXPECT_EQ(text.bytes(), "abcdefg");
  EXPECT_EQ(text.Segments(), (MarkedSegments{{"abc", true}, {"def", false}, {"g", true}}));
  EXPECT_EQ(text.OriginAt(2), Origin::kTemplate);
  EXPECT_EQ(text.OriginAt(3), Origin::kOutside);
}

TEST(MarkedText, ASliceKeepsItsMarks) {
  MarkedText text("ab");
  text.Append("cd", Origin::kOutside);
  text.Append("ef");
  EXPECT_EQ(text.Slice(1, 2).Segments(), (MarkedSegments{{"b", true}, {"c", false}}));
  EXPECT_FALSE(text.Slice(4, 2).HasOutside());
  EXPECT_EQ(text.Slice(0, 2).Whole(), Origin::kTemplate);
  EXPECT_EQ(text.Slice(3, 3).Whole(), Origin::kOutside);
  EXPECT_TRUE(text.Slice(6, 0).Segments().empty());
}

TEST(MarkedText, NothingHasNoOrigin) {
  EXPECT_FALSE(MarkedText("", Origin::kOutside).HasOutside());
  MarkedText text;
  text.Append("", Origin::kOutside);
  text.Append("a");
  EXPECT_EQ(text.Segments(), (MarkedSegments{{"a", true}}));
}

}  // namespace
}  // namespace troupe::jinja
