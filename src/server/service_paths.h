// The paths of the server's endpoints, which are also what metrics call them.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::string_view kChat = "/v1/chat/completions";
inline constexpr std::string_view kResponses = "/v1/responses";
inline constexpr std::string_view kCompletions = "/v1/completions";
inline constexpr std::string_view kMessages = "/v1/messages";
inline constexpr std::string_view kEmbeddings = "/v1/embeddings";
inline constexpr std::string_view kCountTokens = "/v1/messages/count_tokens";
inline constexpr std::string_view kModels = "/v1/models";
inline constexpr std::string_view kModel = "/v1/models/*";
inline constexpr std::string_view kTokenize = "/tokenize";
inline constexpr std::string_view kDetokenize = "/detokenize";
inline constexpr std::string_view kInputTokens = "/v1/responses/input_tokens";
inline constexpr std::string_view kLlamaCompletion = "/completion";
inline constexpr std::string_view kInfill = "/infill";
inline constexpr std::string_view kApplyTemplate = "/apply-template";
inline constexpr std::string_view kSlots = "/slots";
inline constexpr std::string_view kVersion = "/version";
inline constexpr std::string_view kOllamas = "/api/*";
inline constexpr std::string_view kProps = "/props";
inline constexpr std::string_view kCluster = "/cluster";
inline constexpr std::string_view kClusterPlan = "/cluster/plan";
inline constexpr std::string_view kClusterDrain = "/cluster/drain";
inline constexpr std::string_view kClusterReadmit = "/cluster/readmit";
inline constexpr std::string_view kClusterPlace = "/cluster/place";
inline constexpr std::string_view kSplitHello = "/split/hello";
inline constexpr std::string_view kSplitAnswers = "/split/answers";
inline constexpr std::string_view kSplitDrafts = "/split/drafts";
inline constexpr std::string_view kSplitStates = "/split/states/*";
inline constexpr std::string_view kSplitMeasure = "/split/measure";
inline constexpr std::string_view kMetrics = "/metrics";
inline constexpr std::string_view kHealth = "/health";
inline constexpr std::string_view kStart = "/";
inline constexpr std::string_view kLive = "/live";

// What metrics call a path of the router: a path without "/v1" counts as the one with it, and every
// path that no endpoint has as "other", or strangers could make any number of them.
std::string EndpointOf(const std::string& path);

}  // namespace troupe
