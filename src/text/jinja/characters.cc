#include "text/jinja/characters.h"

#include <algorithm>
#include <iterator>

#include "text/utf8.h"

namespace troupe::jinja {
namespace {

// Upper-case letters whose lower case lies a fixed distance on.
struct CaseRange {
  char32_t first, last;
  int distance;
};
constexpr CaseRange kShifted[] = {{'A', 'Z', 32},       {0xC0, 0xD6, 32},    {0xD8, 0xDE, 32},
                                  {0x178, 0x178, -121}, {0x386, 0x386, 38},  {0x388, 0x38A, 37},
                                  {0x38C, 0x38C, 64},   {0x38E, 0x38F, 63},  {0x391, 0x3A1, 32},
                                  {0x3A3, 0x3AB, 32},   {0x400, 0x40F, 80},  {0x410, 0x42F, 32},
                                  {0x531, 0x556, 48},   {0xFF21, 0xFF3A, 32}};

// Letters in pairs, upper then lower case; the first of a range is upper case.
struct PairRange {
  char32_t first, last;
};
constexpr PairRange kPaired[] = {{0x100, 0x12F}, {0x132, 0x137},   {0x139, 0x148},  {0x14A, 0x177},
                                 {0x179, 0x17E}, {0x460, 0x481},   {0x48A, 0x4BF},  {0x4C1, 0x4CE},
                                 {0x4D0, 0x52F}, {0x1E00, 0x1E95}, {0x1EA0, 0x1EFF}};

bool IsAnyOf(char32_t character, std::initializer_list<PairRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const PairRange& range) {
    return character >= range.first && character <= range.last;
  });
}

}  // namespace

std::size_t CharacterLength(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return 1;
  return ReadUtf8(text.substr(at, 4)).length;
}

std::size_t CountCharacters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += CharacterLength(text, at)) ++count;
  return count;
}

std::vector<std::size_t> CharacterStarts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += CharacterLength(text, at)) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

char32_t CharacterAt(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return static_cast<char32_t>(text[at]);
  const Utf8Prefix prefix = ReadUtf8(text.substr(at, 4));
  if (prefix.state != Utf8Prefix::State::kValid) return 0xFFFD;
  return DecodeUtf8(text.substr(at, prefix.length));
}

bool IsSpace(char32_t c) {
  return IsAnyOf(c, {{9, 13},
                     {0x1C, 0x20},
                     {0x85, 0x85},
                     {0xA0, 0xA0},
                     {0x1680, 0x1680},
                     {0x2000, 0x200A},
                     {0x2028, 0x2029},
                     {0x202F, 0x202F},
                     {0x205F, 0x205F},
                     {0x3000, 0x3000}});
}

bool IsLineEnd(char32_t c) {
  return IsAnyOf(c, {{10, 13}, {0x1C, 0x1E}, {0x85, 0x85}, {0x2028, 0x2029}});
}

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  if (IsSpace(c)) return false;
  return !IsAnyOf(c, {{0, 0x1F},
                      {0x7F, 0x9F},
                      {0xAD, 0xAD},
                      {0x600, 0x605},
                      {0x61C, 0x61C},
                      {0x6DD, 0x6DD},
                      {0x70F, 0x70F},
                      {0x180E, 0x180E},
                      {0x200B, 0x200F},
                      {0x202A, 0x202E},
                      {0x2060, 0x206F},
                      {0xD800, 0xF8FF},
                      {0xFEFF, 0xFEFF},
                      {0xFFF0, 0xFFFB},
                      {0xFFFE, 0xFFFF},
                      {0xE0000, 0x10FFFF}});
}

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }

bool IsLetter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return IsAnyOf(
      c,
      {{0xAA, 0xAA},     {0xB5, 0xB5},     {0xBA, 0xBA},     {0xC0, 0xD6},     {0xD8, 0xF6},
       {0xF8, 0x2C1},    {0x370, 0x373},   {0x376, 0x37D},   {0x386, 0x386},   {0x388, 0x481},
       {0x48A, 0x556},   {0x561, 0x587},   {0x5D0, 0x5EA},   {0x620, 0x64A},   {0x904, 0x939},
       {0x10A0, 0x10FF}, {0x1E00, 0x1FFC}, {0x3041, 0x3096}, {0x30A1, 0x30FA}, {0x3400, 0x4DBF},
       {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A}, {0x20000, 0x323AF}});
}

char32_t LowerOf(char32_t c) {
  for (const CaseRange& range : kShifted) {
    if (c >= range.first && c <= range.last) return c + static_cast<char32_t>(range.distance);
  }
  for (const PairRange& range : kPaired) {
    if (c >= range.first && c <= range.last && (c - range.first) % 2 == 0) return c + 1;
  }
  return c;
}

char32_t UpperOf(char32_t c) {
  if (c == 0xB5) return 0x39C;
  if (c == 0x131) return 'I';
  if (c == 0x17F) return 'S';
  if (c == 0x3C2) return 0x3A3;
  for (const CaseRange& range : kShifted) {
    const char32_t upper = c - static_cast<char32_t>(range.distance);
    if (upper >= range.first && upper <= range.last) return upper;
  }
  for (const PairRange& range : kPaired) {
    if (c >= range.first && c <= range.last && (c - range.first) % 2 == 1) return c - 1;
  }
  return c;
}

}  // namespace troupe::jinja
