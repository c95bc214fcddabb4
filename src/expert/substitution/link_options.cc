#include "expert/substitution/link_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "expert/substitution/substitution_policy.h"

namespace troupe {
namespace {

template <typename T>
bool ReadWhole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<LinkOptions> LinkOptions::Read(std::string_view link, std::string_view kind) {
  LinkOptions read;
  read.kind_ = kind;
  read.name_ = link.substr(0, link.find(':'));
  for (std::size_t at = link.find(':'); at != std::string_view::npos;) {
    const std::size_t end = link.find(':', at + 1);
    const std::string_view option = link.substr(at + 1, end - at - 1);
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == option.size()) {
      return InvalidArgument("{} '{}': '{}' found, key=value expected", kind, link, option);
    }
    const std::string_view key = option.substr(0, equals);
    if (std::ranges::find(read.options_, key, &Option::key) != read.options_.end()) {
      return InvalidArgument("{} '{}': {} is given twice", kind, link, key);
    }
    read.options_.push_back({std::string(key), std::string(option.substr(equals + 1))});
    at = end;
  }
  return read;
}

LinkOptions::Option* LinkOptions::Take(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const auto found = std::ranges::find(options_, key, &Option::key);
  if (found == options_.end()) return nullptr;
  found->taken = true;
  return &*found;
}

bool LinkOptions::Has(std::string_view key) const {
  return std::ranges::find(options_, key, &Option::key) != options_.end();
}

void LinkOptions::Fault(const Option& option, std::string_view expected) {
  if (!status_.ok()) return;
  status_ = InvalidArgument("{} {}: {}={} found, {} expected", kind_, name_, option.key,
                            option.value, expected);
}

double LinkOptions::Number(std::string_view key, double usual, double least, double most) {
  const Option* option = Take(key);
  if (option == nullptr) return usual;
  double value = usual;
  // Written so that what is no number at all is a fault, too.
  if (!ReadWhole(option->value, value) || !(value >= least && value <= most)) {
    Fault(*option, fmt::format("a number from {} to {}", least, most));
    return usual;
  }
  return value;
}

std::uint32_t LinkOptions::Whole(std::string_view key, std::uint32_t usual, std::uint32_t least,
                                 std::uint32_t most) {
  const Option* option = Take(key);
  if (option == nullptr) return usual;
  std::uint32_t value = usual;
  if (!ReadWhole(option->value, value) || value < least || value > most) {
    Fault(*option, fmt::format("a whole number from {} to {}", least, most));
    return usual;
  }
  return value;
}

std::uint32_t LinkOptions::WholeOrAll(std::string_view key, std::uint32_t usual) {
  if (Is(key, "all")) return kNoLimit;
  return Whole(key, usual, 0, 1024);
}

bool LinkOptions::Flag(std::string_view key, bool usual) {
  return Whole(key, usual ? 1 : 0, 0, 1) == 1;
}

bool LinkOptions::Is(std::string_view key, std::string_view word) {
  const Option* option = Take(key);
  return option != nullptr && option->value == word;
}

Status LinkOptions::Finish() const {
  if (!status_.ok()) return status_;
  for (const Option& option : options_) {
    if (option.taken) continue;
    if (known_.empty()) {
      return InvalidArgument("{} {}: {} found, no options expected", kind_, name_, option.key);
    }
    return InvalidArgument("{} {}: no option {}, expected {}", kind_, name_, option.key,
                           fmt::join(known_, ", "));
  }
  return OkStatus();
}

}  // namespace troupe
