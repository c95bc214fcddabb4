#include "base/printable.h"

#include <cstddef>

namespace troupe {
namespace {

// The length of the control character that begins at `at`; 0: none does.
std::size_t ControlAt(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);  // U+0080 to U+009F
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

std::string WithoutControls(std::string_view text, std::string_view but) {
  std::string printable;
  printable.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t control = ControlAt(text, at);
    const bool stays = control == 0 || but.find(text[at]) != but.npos;
    printable += stays ? text[at] : '?';
    at += stays ? 1 : control;
  }
  return printable;
}

}  // namespace

std::string Printable(std::string_view text) { return WithoutControls(text, ""); }

std::string PrintableText(std::string_view text) { return WithoutControls(text, "\n\t"); }

}  // namespace troupe
