#include "sim/shared_pass.h"

#include <algorithm>
#include <utility>

namespace troupe {

SequenceId SharedPass::SequenceOf(std::uint32_t prompt) {
  auto found = std::ranges::find(prompts_, std::optional(prompt));
  if (found == prompts_.end()) {
    found = std::ranges::find_if(prompts_, [](const auto& taken) { return !taken.has_value(); });
  }
  if (found == prompts_.end()) found = prompts_.emplace(prompts_.end());
  *found = prompt;
  return static_cast<SequenceId>(found - prompts_.begin());
}

bool SharedPass::Begin() {
  if (!parts_.empty() || next_.empty()) return false;
  parts_ = std::exchange(next_, {});
  sequences_.clear();
  for (const PassPart& part : parts_) sequences_.push_back(SequenceOf(part.prompt));
  return true;
}

std::vector<std::uint32_t> SharedPass::Prompts() const {
  std::vector<std::uint32_t> prompts;
  for (const PassPart& part : parts_) prompts.push_back(part.prompt);
  for (const PassPart& part : next_) prompts.push_back(part.prompt);
  return prompts;
}

void SharedPass::Leave(std::uint32_t prompt) {
  const auto found = std::ranges::find(prompts_, std::optional(prompt));
  if (found != prompts_.end()) found->reset();
}

PassFacts SharedPass::Facts() const {
  PassFacts facts;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    facts.groups.push_back({.sequence = sequences_[i],
                            .request = parts_[i].prompt,
                            .phase = parts_[i].phase,
                            .position = parts_[i].position,
                            .rows = parts_[i].tokens});
  }
  return facts;
}

std::uint32_t SharedPass::tokens() const {
  std::uint32_t tokens = 0;
  for (const PassPart& part : parts_) tokens += part.tokens;
  return tokens;
}

std::vector<std::uint32_t> SharedPass::CountsOf(std::uint32_t layer) const {
  std::vector<std::uint32_t> counts(parts_.size() * experts_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PassPart& part = parts_[i];
    std::uint32_t token = part.first % part.trace->tokens;
    for (std::uint32_t t = 0; t < part.tokens; ++t) {
      for (const std::uint16_t id : part.trace->Chosen(layer, token)) ++counts[i * experts_ + id];
      if (++token == part.trace->tokens) token = 0;
    }
  }
  return counts;
}

std::vector<ExpertDemand> SharedPass::DemandsOf(std::uint32_t layer) const {
  const std::vector<std::uint32_t> counts = CountsOf(layer);
  std::vector<ExpertDemand> demands;
  for (std::uint32_t e = 0; e < experts_; ++e) {
    std::uint32_t tokens = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) tokens += counts[i * experts_ + e];
    if (tokens > 0) demands.push_back({.expert = e, .tokens = tokens});
  }
  return demands;
}

ChosenRows SharedPass::RowsOf(std::uint32_t layer, std::span<const std::uint32_t> experts) const {
  ChosenRows rows;
  for (const PassPart& part : parts_) {
    std::uint32_t token = part.first % part.trace->tokens;
    for (std::uint32_t t = 0; t < part.tokens; ++t) {
      const auto chosen =
          std::ranges::count_if(part.trace->Chosen(layer, token), [experts](std::uint16_t id) {
            return std::ranges::find(experts, std::uint32_t{id}) != experts.end();
          });
      rows.assignments += static_cast<std::uint32_t>(chosen);
      rows.tokens += chosen > 0 ? 1 : 0;
      if (++token == part.trace->tokens) token = 0;
    }
  }
  return rows;
}

}  // namespace troupe
