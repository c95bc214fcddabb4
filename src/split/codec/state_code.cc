#include "split/codec/state_code.h"

#include <fmt/core.h>

#include "base/check.h"
#include "split/codec/code_groups.h"

namespace troupe {

std::string_view ToString(StateForm form) {
  switch (form) {
    case StateForm::kFloat:
      return "floats";
    case StateForm::kInt8:
      return "8 bits";
    case StateForm::kInt4:
      return "4 bits";
  }
  return "unknown";
}

std::string_view NameOf(StateForm form) {
  switch (form) {
    case StateForm::kFloat:
      return "floats";
    case StateForm::kInt8:
      return "int8";
    case StateForm::kInt4:
      return "int4";
  }
  return "unknown";
}

std::optional<StateForm> StateFormFrom(std::string_view name) {
  for (const StateForm form : {StateForm::kFloat, StateForm::kInt8, StateForm::kInt4}) {
    if (NameOf(form) == name) return form;
  }
  return std::nullopt;
}

std::string ToString(const StateCode& code) {
  if (code.rank == 0) return fmt::format("all, {}", ToString(code.form));
  return fmt::format("rank {}, {}", code.rank, ToString(code.form));
}

std::size_t StateRowBytes(const StateCode& code, std::size_t width, std::size_t kept) {
  if (code.exact()) return width * sizeof(float);
  TROUPE_CHECK(kept < width && code.rank <= width - kept);
  const std::size_t apart = kept * sizeof(float);
  if (code.rank == 0) return apart + PackedBytes(code.form, width - kept);
  return apart + sizeof(float) + PackedBytes(code.form, code.rank);
}

}  // namespace troupe
