#include "server/service_paths.h"

namespace troupe {

std::string EndpointOf(const std::string& path) {
  if (path.empty()) return "other";
  if (path == "/v1/health") return std::string(kHealth);
  for (const std::string_view endpoint :
       {kChat, kResponses, kInputTokens, kCompletions, kEmbeddings, kModels, kModel}) {
    if (endpoint == "/v1" + path) return std::string(endpoint);
  }
  return path;
}

}  // namespace troupe
