// A text whose bytes know where they come from: from the template, which may write special tokens,
// or from outside (what users and tools wrote), which may not. Every operation of a template keeps
// the marks, so that a rendered prompt divides into segments that the tokenizer can trust.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_segment.h"

namespace troupe::jinja {

enum class Origin : char { kTemplate = 0, kOutside = 1 };

class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string bytes, Origin origin = Origin::kTemplate);

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Whether any byte comes from outside, as a whole and at one place.
  bool HasOutside() const { return !marks_.empty(); }
  Origin OriginAt(std::size_t i) const;
  // What a text is worth that is computed from all of this one, byte by byte no longer.
  Origin Whole() const { return HasOutside() ? Origin::kOutside : Origin::kTemplate; }

  void Append(std::string_view bytes, Origin origin = Origin::kTemplate);
  void Append(const MarkedText& other);
  void AppendSlice(const MarkedText& other, std::size_t at, std::size_t length);
  MarkedText Slice(std::size_t at, std::size_t length) const;

  // Whether `safe` or `escape` made it: then `+` escapes for HTML what it adds to it.
  bool IsHtml() const { return is_html_; }
  MarkedText AsHtml() &&;

  // The longest runs of one origin.
  std::vector<TextSegment> Segments() const;

 private:
  void Mark(std::size_t from, Origin origin);

  std::string bytes_;
  std::string marks_;  // empty if all is the template's, otherwise an Origin for each byte
  bool is_html_ = false;
};

}  // namespace troupe::jinja
