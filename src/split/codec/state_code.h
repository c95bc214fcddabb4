// How rows of the residual stream are written where they cross a cut between two layers: all of a
// row's numbers or its first directions, each as a float or in few bits; and whether an entropy
// coder shortens messages of them. What the bytes of a row are: docs/formats/states.md.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

enum class StateForm : std::uint8_t {
  kFloat = 0,  // every bit
  kInt8 = 1,   // codes of 8 bits with a scale for each 32
  kInt4 = 2,   // the same of 4 bits
};
inline constexpr StateForm kLastStateForm = StateForm::kInt4;

struct StateCode {
  std::uint32_t rank = 0;  // directions of a row that cross; 0: no directions, all its channels
  StateForm form = StateForm::kFloat;
  bool rans = false;  // codes in as many bits as they say (rans.h): the same rows, in fewer bytes

  // The row that comes out has the bytes of the one that went in.
  bool exact() const { return rank == 0 && form == StateForm::kFloat; }
  // The same row, as long as its form says.
  StateCode plain() const { return {.rank = rank, .form = form}; }
  auto operator<=>(const StateCode&) const = default;
};

std::string_view ToString(StateForm form);
// As files and messages say it: "floats", "int8", "int4".
std::string_view NameOf(StateForm form);
std::optional<StateForm> StateFormFrom(std::string_view name);
// The same with what comes of a message as a whole, the rank left out: "int4-rans".
std::string NameOf(const StateCode& code);
std::optional<StateCode> StateCodeFrom(std::string_view name);
std::string ToString(
    const StateCode& code);  // "all, floats", "rank 96, 8 bits", "all, 4 bits, rANS"

// Of a row so wide of which `kept` channels cross apart, as floats, before an entropy coder. An
// exact code keeps none apart.
// REQUIRES: kept < width and code.rank <= width - kept.
std::size_t StateRowBytes(const StateCode& code, std::size_t width, std::size_t kept);

}  // namespace troupe
