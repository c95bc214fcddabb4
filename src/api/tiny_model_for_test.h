// A small model that comes with the project, opened as an embedder would, and requests for it.
#pragma once

#include <troupe/model.h>

#include <memory>
#include <string>
#include <utility>

namespace troupe {

inline constexpr const char* kPath = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

inline std::unique_ptr<Model> OpenTiny(ModelOptions options = {}) {
  options.context = 96;
  options.threads = 2;
  return Model::Open(kPath, options).value();
}

inline Request Ask(std::string prompt, std::size_t tokens = 16, std::uint64_t seed = 1) {
  return {.prompt = std::move(prompt), .max_tokens = tokens, .sampling = {.seed = seed}};
}

}  // namespace troupe
