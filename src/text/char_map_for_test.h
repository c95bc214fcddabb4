// Compiles a map of characters as SentencePiece does: a double array, and the texts behind it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class CharMapCompiler {
 public:
  // None of the texts to be replaced is empty.
  static std::string Compile(const std::map<std::string, std::string>& map) {
    CharMapCompiler compiler;
    std::map<std::string, std::uint32_t> places;
    std::string texts;
    for (const auto& [from, to] : map) {
      places[from] = static_cast<std::uint32_t>(texts.size());
      texts += to;
      texts += '\0';
    }
    compiler.taken_.insert(0);
    compiler.Place(0, "", places);
    std::string out = Bytes(static_cast<std::uint32_t>(compiler.units_.size() * 4));
    for (const std::uint32_t unit : compiler.units_) out += Bytes(unit);
    return out + texts;
  }

 private:
  static std::string Bytes(std::uint32_t number) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
    return bytes;
  }

  std::uint32_t& At(std::uint32_t place) {
    if (place >= units_.size()) units_.resize(place + 1, 1u << 31);  // leads nowhere
    return units_[place];
  }

  // The node of this beginning, whose label is there.
  void Place(std::uint32_t node, const std::string& beginning,
             const std::map<std::string, std::uint32_t>& places) {
    std::set<std::uint8_t> next;
    bool ends = false;
    for (const auto& [from, place] : places) {
      if (!from.starts_with(beginning)) continue;
      if (from.size() == beginning.size()) {
        ends = true;
      } else {
        next.insert(static_cast<std::uint8_t>(from[beginning.size()]));
      }
    }
    std::uint32_t offset = 1;
    const auto fits = [&] {
      if (ends && taken_.contains(node ^ offset)) return false;
      for (const std::uint8_t byte : next) {
        if (taken_.contains(node ^ offset ^ byte)) return false;
      }
      return true;
    };
    while (!fits()) ++offset;
    const std::uint32_t label = beginning.empty() ? 0 : static_cast<std::uint8_t>(beginning.back());
    At(node) = offset << 10 | (ends ? 1u << 8 : 0) | label;
    if (ends) {
      taken_.insert(node ^ offset);
      At(node ^ offset) = 1u << 31 | places.at(beginning);
    }
    for (const std::uint8_t byte : next) taken_.insert(node ^ offset ^ byte);
    for (const std::uint8_t byte : next) {
      Place(node ^ offset ^ byte, beginning + static_cast<char>(byte), places);
    }
  }

  std::vector<std::uint32_t> units_;
  std::set<std::uint32_t> taken_;
};

}  // namespace troupe
