#include "fetch/fetch_settings.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fetch/plan/web_address.h"
#include "io/text_file.h"

namespace troupe {
namespace {

constexpr std::string_view kHub = "https://huggingface.co";
constexpr std::string_view kOllamaRegistry = "https://registry.ollama.ai";
constexpr Bytes kLongestToken = 4_KiB;

std::string FromEnvironment(const char* name, std::string_view otherwise = {}) {
  const char* const value = std::getenv(name);
  return std::string(value == nullptr || *value == '\0' ? otherwise : std::string_view(value));
}

Result<std::string> ServerOf(const char* name, std::string_view otherwise) {
  std::string address = FromEnvironment(name, otherwise);
  while (address.ends_with('/')) address.pop_back();
  if (const Result<std::string> origin = OriginOf(address); !origin.ok()) {
    return Status(origin.status()).WithContext(name);
  }
  return address;
}

std::string HomePath(std::string_view under) {
  const std::string home = FromEnvironment("HOME");
  return home.empty() ? home : fmt::format("{}/{}", home, under);
}

// A line end in a token would be the end of its header.
Result<std::string> TokenOf(std::string text, std::string_view from) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  if (std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7F; })) return text;
  return InvalidArgument("{}: a token has no spaces or control characters in it", from);
}

Result<std::string> HubToken() {
  if (std::string token = FromEnvironment("HF_TOKEN"); !token.empty()) {
    return TokenOf(std::move(token), "HF_TOKEN");
  }
  const std::string home = FromEnvironment("HF_HOME", HomePath(".cache/huggingface"));
  const std::string path = FromEnvironment("HF_TOKEN_PATH", home.empty() ? "" : home + "/token");
  const Result<std::string> text = ReadWholeText(path, kLongestToken);
  return text.ok() ? TokenOf(*text, path) : std::string();  // most have none
}

}  // namespace

std::string ModelFolder() {
  if (std::string own = FromEnvironment("TROUPE_MODELS"); !own.empty()) return own;
  const std::string data = FromEnvironment("XDG_DATA_HOME", HomePath(".local/share"));
  return data.empty() ? data : data + "/troupe/models";
}

Result<FetchSettings> ReadFetchSettings() {
  FetchSettings settings;
  TROUPE_ASSIGN_OR_RETURN(settings.hub, ServerOf("HF_ENDPOINT", kHub));
  TROUPE_ASSIGN_OR_RETURN(settings.token, HubToken());
  TROUPE_ASSIGN_OR_RETURN(settings.ollama, ServerOf("OLLAMA_REGISTRY", kOllamaRegistry));
  settings.folder = ModelFolder();
  if (settings.folder.empty()) {
    return InvalidArgument("none of TROUPE_MODELS, XDG_DATA_HOME and HOME names a folder");
  }
  return settings;
}

}  // namespace troupe
