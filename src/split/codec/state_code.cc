#include "split/codec/state_code.h"

#include <fmt/core.h>

#include "base/check.h"
#include "split/codec/code_groups.h"

namespace troupe {
namespace {

constexpr std::string_view kRansSuffix = "-rans";

}  // namespace

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

std::string NameOf(const StateCode& code) {
  return fmt::format("{}{}", NameOf(code.form), code.rans ? kRansSuffix : "");
}

std::optional<StateCode> StateCodeFrom(std::string_view name) {
  StateCode code;
  code.rans = name.ends_with(kRansSuffix);
  if (code.rans) name.remove_suffix(kRansSuffix.size());
  const std::optional<StateForm> form = StateFormFrom(name);
  if (!form || (code.rans && *form == StateForm::kFloat)) return std::nullopt;
  code.form = *form;
  return code;
}

std::string ToString(const StateCode& code) {
  const std::string_view form = ToString(code.form), coder = code.rans ? ", rANS" : "";
  if (code.rank == 0) return fmt::format("all, {}{}", form, coder);
  return fmt::format("rank {}, {}{}", code.rank, form, coder);
}

std::size_t StateRowBytes(const StateCode& code, std::size_t width, std::size_t kept) {
  if (code.exact()) return width * sizeof(float);
  TROUPE_CHECK(kept < width && code.rank <= width - kept);
  const std::size_t apart = kept * sizeof(float);
  if (code.rank == 0) return apart + PackedBytes(code.form, width - kept);
  return apart + sizeof(float) + PackedBytes(code.form, code.rank);
}

}  // namespace troupe
