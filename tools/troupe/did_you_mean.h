// Which word was probably meant by one that was mistyped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

// Letters to add, drop, change or swap with their neighbours to make one word from the other.
std::size_t EditDistance(std::string_view a, std::string_view b);

// None if none of the words is near. A word that begins with what was typed is near.
std::optional<std::string> DidYouMean(std::string_view typed, std::span<const std::string> words);

}  // namespace troupe
