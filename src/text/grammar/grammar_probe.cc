// For tests/json_schema_oracle_test.py: compiles schemas and reads texts as an answer would be
// read. Not part of the product. Each line of stdin is a JSON request, each line of stdout its
// answer:
//   {"schema": S}   {"ok": true} or {"error": "..."}; later lines are about S
//   {"walk": seed}  {"text": T} by a random walk over the bytes that are allowed, or {} if it got
//   long
//   {"text": T}     {"accepted": true} if T is a whole text of the grammar
#include <algorithm>
#include <bitset>
#include <iostream>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/json.h"
#include "base/rng.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

constexpr std::size_t kWalkFreely = 150;  // bytes, before the walk looks for the end
constexpr std::size_t kLongestWalk = 4000;

// A byte that is allowed; late in the walk one that closes rather than one that opens.
char Choose(const std::bitset<256>& allowed, bool looks_for_end, Rng& rng) {
  if (looks_for_end) {
    for (const char closing : std::string_view("}]\"0ntf,:")) {
      if (allowed[static_cast<unsigned char>(closing)]) return closing;
    }
  }
  std::string bytes;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    // Bytes beyond ASCII are many: they would be all of each string.
    const bool is_rare = byte >= 0x80 && (allowed['"'] || allowed['a']);
    if (allowed[byte] && (!is_rare || rng.Below(40) == 0)) bytes += static_cast<char>(byte);
  }
  if (allowed['"'] && rng.Below(4) == 0) return '"';
  return bytes[rng.Below(bytes.size())];
}

std::optional<std::string> Walk(Matcher matcher, std::uint64_t seed) {
  Rng rng(seed);
  std::string text;
  while (text.size() < kLongestWalk) {
    const bool looks_for_end = text.size() > kWalkFreely;
    if (matcher.CanEnd().value() && (looks_for_end || rng.Below(3) == 0)) return text;
    const auto allowed = matcher.AllowedBytes().value();
    if (allowed.none()) return matcher.IsDone().value() ? std::optional(text) : std::nullopt;
    const char byte = Choose(allowed, looks_for_end, rng);
    if (!matcher.Accept({&byte, 1}).value()) return std::nullopt;
    text += byte;
  }
  return std::nullopt;
}

class Probe {
 public:
  Json Answer(const Json& request) {
    if (const Json* schema = request.Find("schema")) return SetSchema(*schema);
    if (const Json* seed = request.Find("walk")) {
      const auto text = Walk(*start_, seed->AsCount());
      return text ? Json({{"text", *text}}) : Json::Object();
    }
    Matcher matcher = *start_;
    const bool accepted = matcher.Accept(request.Find("text")->AsString()).value();
    return {{"accepted", accepted && matcher.CanEnd().value()}};
  }

 private:
  Json SetSchema(const Json& schema) {
    const auto grammar = CompileJsonSchema(schema);
    if (!grammar.ok()) return {{"error", grammar.status().message()}};
    const auto automaton = Automaton::Compile(*grammar);
    if (!automaton.ok()) return {{"error", automaton.status().message()}};
    start_.emplace(*automaton);
    return {{"ok", true}};
  }

  std::optional<Matcher> start_;
};

}  // namespace
}  // namespace troupe

int main() {
  troupe::Probe probe;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = troupe::Json::Parse(line);
    TROUPE_CHECK(request.has_value());
    std::cout << probe.Answer(*request).Dump() << std::endl;
  }
}
