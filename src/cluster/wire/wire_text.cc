#include "cluster/wire/wire_text.h"

#include <algorithm>

namespace troupe {
namespace {

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

}  // namespace

Status CheckPeerName(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > kMaxPeerNameBytes) {
    return InvalidArgument("{}: {} characters found, 1 to {} expected", what, name.size(),
                           kMaxPeerNameBytes);
  }
  const auto bad = std::ranges::find_if(name, [](char c) { return c <= 0x20 || c >= 0x7f; });
  if (bad != name.end()) {
    return InvalidArgument("{}: byte {:#04x} found, printable ASCII without spaces expected", what,
                           static_cast<unsigned char>(*bad));
  }
  return OkStatus();
}

bool IsPeerText(std::string_view text) {
  return text.size() <= kMaxPeerTextBytes && std::ranges::none_of(text, IsControl);
}

std::string AsPeerText(std::string_view text) {
  std::size_t size = std::min(text.size(), kMaxPeerTextBytes);
  while (size > 0 && size < text.size() && ContinuesCharacter(text[size])) --size;
  std::string fitting(text.substr(0, size));
  std::ranges::replace_if(fitting, IsControl, ' ');
  return fitting;
}

}  // namespace troupe
