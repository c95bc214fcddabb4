#include "text/jinja/marked_text.h"

#include <algorithm>
#include <utility>

namespace troupe::jinja {

MarkedText::MarkedText(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  Mark(0, origin);
}

// Gives the bytes from `from` to the end their origin.
void MarkedText::Mark(std::size_t from, Origin origin) {
  if (origin == Origin::kTemplate && marks_.empty()) return;
  if (from == bytes_.size()) return;
  marks_.resize(from, static_cast<char>(Origin::kTemplate));
  marks_.resize(bytes_.size(), static_cast<char>(origin));
}

Origin MarkedText::OriginAt(std::size_t i) const {
  return marks_.empty() ? Origin::kTemplate : static_cast<Origin>(marks_[i]);
}

void MarkedText::Append(std::string_view bytes, Origin origin) {
  const std::size_t from = bytes_.size();
  bytes_ += bytes;
  Mark(from, origin);
}

void MarkedText::Append(const MarkedText& other) { AppendSlice(other, 0, other.size()); }

void MarkedText::AppendSlice(const MarkedText& other, std::size_t at, std::size_t length) {
  const std::size_t from = bytes_.size();
  bytes_.append(other.bytes_, at, length);
  if (other.marks_.find(static_cast<char>(Origin::kOutside), at) >= at + length) {
    Mark(from, Origin::kTemplate);
    return;
  }
  marks_.resize(from, static_cast<char>(Origin::kTemplate));
  marks_.append(other.marks_, at, length);
}

MarkedText MarkedText::Slice(std::size_t at, std::size_t length) const {
  MarkedText slice;
  slice.AppendSlice(*this, at, length);
  slice.is_html_ = is_html_;
  return slice;
}

MarkedText MarkedText::AsHtml() && {
  is_html_ = true;
  return std::move(*this);
}

std::vector<TextSegment> MarkedText::Segments() const {
  std::vector<TextSegment> segments;
  for (std::size_t at = 0; at < size();) {
    std::size_t end = size();
    if (!marks_.empty()) end = std::min(end, marks_.find_first_not_of(marks_[at], at));
    segments.push_back({bytes_.substr(at, end - at), OriginAt(at) == Origin::kTemplate});
    at = end;
  }
  return segments;
}

}  // namespace troupe::jinja
