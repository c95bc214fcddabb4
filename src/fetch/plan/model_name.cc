#include "fetch/plan/model_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr std::size_t kLongestNamePart = 200;
constexpr std::array<std::string_view, 2> kHubHosts = {"hf.co", "huggingface.co"};
constexpr std::array<std::string_view, 2> kOllamaHosts = {"ollama.com", "registry.ollama.ai"};

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A part of a name is a part of a path, too, here and in an address.
bool IsNamePart(std::string_view part) {
  const auto fits = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= kLongestNamePart && part.front() != '.' &&
         std::ranges::all_of(part, fits);
}

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

template <std::size_t kCount>
bool TakeHost(std::string_view& text, const std::array<std::string_view, kCount>& hosts) {
  return std::ranges::any_of(
      hosts, [&](std::string_view host) { return TakePrefix(text, std::string(host) + "/"); });
}

Status NoName(std::string_view text) {
  return InvalidArgument(
      "'{}' names no model; expected hf.co/OWNER/REPO, hf.co/OWNER/REPO:TYPE, NAME:TAG or "
      "ollama.com/OWNER/NAME:TAG",
      text);
}

// "OWNER/REPO/blob/main/FILE" and the like: the address of a page of a file.
void TakeFilePage(std::vector<std::string_view>& parts, std::string& variant) {
  if (parts.size() < 4 || (parts[2] != "blob" && parts[2] != "resolve" && parts[2] != "tree")) {
    return;
  }
  if (parts.size() > 4) {
    const char* const begin = parts[4].data();
    variant.assign(begin, parts.back().data() + parts.back().size());
  }
  parts.resize(2);
}

std::optional<ModelName> ReadName(std::string_view text) {
  const bool page = TakePrefix(text, "https://") || TakePrefix(text, "http://");
  const bool on_hub = TakeHost(text, kHubHosts);
  const bool on_ollama = !on_hub && TakeHost(text, kOllamaHosts);
  if (page && !on_hub && !on_ollama) return std::nullopt;
  if (page) text = text.substr(0, text.find_first_of("?#"));
  std::string variant;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    variant = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (variant.empty()) return std::nullopt;
  }
  while (text.ends_with('/')) text.remove_suffix(1);
  std::vector<std::string_view> parts = PartsOf(text);
  if (on_hub && variant.empty()) TakeFilePage(parts, variant);
  if (!variant.empty() && !std::ranges::all_of(PartsOf(variant), IsNamePart)) return std::nullopt;
  if (!std::ranges::all_of(parts, IsNamePart)) return std::nullopt;
  if (on_hub) {
    if (parts.size() != 2) return std::nullopt;
    return ModelName{ModelName::Place::kHub, std::string(parts[0]), std::string(parts[1]), variant};
  }
  // Without a host, two parts may be of either.
  if (parts.size() > (on_ollama ? 2U : 1U) || variant.find('/') != std::string::npos) {
    return std::nullopt;
  }
  return ModelName{ModelName::Place::kOllama, parts.size() == 2 ? std::string(parts[0]) : "library",
                   std::string(parts.back()), variant.empty() ? "latest" : variant};
}

}  // namespace

std::string ModelName::Repository() const {
  return fmt::format("{}/{}/{}", place == Place::kHub ? "hf.co" : "ollama.com", owner, name);
}

std::string ModelName::ToString() const {
  return variant.empty() ? Repository() : fmt::format("{}:{}", Repository(), variant);
}

Result<ModelName> ParseModelName(std::string_view text) {
  if (std::optional<ModelName> name = ReadName(text)) return *std::move(name);
  std::string_view repository = text.substr(0, text.find(':'));
  const bool has_host = TakeHost(repository, kHubHosts) || TakeHost(repository, kOllamaHosts);
  if (!has_host && std::ranges::count(repository, '/') == 1 &&
      ReadName(fmt::format("hf.co/{}", text))) {
    return InvalidArgument("'{}' may be hf.co/{} or ollama.com/{}: say which", text, text, text);
  }
  return NoName(text);
}

}  // namespace troupe
