// A small model that comes with the project, opened as an embedder would, and requests for it.
#pragma once

#include <gtest/gtest.h>
#include <troupe/model.h>

#include <cstdint>
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

// With memory for about that share of the experts: between a quarter of it and twice as many. What
// the process itself holds, which is in the budget, changes from one plan to the next (a sanitizer
// keeps what was freed), so the budget is searched.
inline std::unique_ptr<Model> OpenTinyWithFew(ModelOptions options, double share = 0.5) {
  options.context = options.context.value_or(96);
  options.threads = 2;
  std::int64_t more = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    options.memory.reset();
    const Plan plan = Model::PlanFor(kPath, options).value();
    const double experts = (1 - share) * static_cast<double>(plan.experts.count());
    options.memory = Bytes(static_cast<std::uint64_t>(
        static_cast<std::int64_t>(plan.total.count()) - static_cast<std::int64_t>(experts) + more));
    auto model = Model::Open(kPath, options);
    double held = 0;  // nothing: it did not open
    if (model.ok()) {
      const Plan& made = (*model)->plan();
      held = made.AllInMemory() ? 1.0
                                : static_cast<double>(made.experts_in_memory) /
                                      static_cast<double>(made.experts_in_all);
    }
    if (held >= share / 4 && held <= 2 * share && held < 1) return std::move(model).value();
    more += held < share / 4 ? 1 << 20 : -(1 << 20);
  }
  ADD_FAILURE() << "no budget holds a part of the experts";
  return nullptr;
}

inline Request Ask(std::string prompt, std::size_t tokens = 16, std::uint64_t seed = 1) {
  return {.prompt = std::move(prompt), .max_tokens = tokens, .sampling = {.seed = seed}};
}

}  // namespace troupe
