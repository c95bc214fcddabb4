#include "expert/flow/batch_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace troupe {
namespace {

std::vector<const BatchCandidate*> InPhase(std::span<const BatchCandidate> waiting, Phase phase) {
  std::vector<const BatchCandidate*> found;
  for (const BatchCandidate& candidate : waiting) {
    if (candidate.phase == phase) found.push_back(&candidate);
  }
  return found;
}

std::uint32_t LongestWait(std::span<const BatchCandidate* const> candidates) {
  std::uint32_t longest = 0;
  for (const BatchCandidate* candidate : candidates) {
    longest = std::max(longest, candidate->passed_over);
  }
  return longest;
}

// Rows that decodes may take: a prompt that waits keeps one. A pass of one row is for whoever waits
// longer.
std::uint32_t MostDecodes(std::span<const BatchCandidate* const> decodes,
                          std::span<const BatchCandidate* const> prompts,
                          const BatchLimits& limits) {
  if (prompts.empty() || decodes.size() < limits.most_rows) return limits.most_rows;
  if (limits.most_rows > 1 || LongestWait(prompts) > LongestWait(decodes)) {
    return limits.most_rows - 1;
  }
  return limits.most_rows;
}

// Rows that guesses leave to prompts that wait.
std::uint32_t RowsKeptFor(std::span<const BatchCandidate* const> prompts,
                          const BatchLimits& limits) {
  std::uint32_t rows = limits.least_chunk;
  for (const BatchCandidate* prompt : prompts) {
    rows = std::max(rows, prompt->whole);
  }
  return rows;
}

// Rows of prompts that fit beside these decodes.
std::uint32_t PromptRows(std::uint32_t decodes, const RowSpeed& speed, const BatchLimits& limits) {
  const std::uint32_t room = limits.most_rows - decodes;
  if (decodes == 0) return room;
  return PromptRowsBeside(
      speed.decode.At(decodes), [&speed](std::uint32_t rows) { return speed.prompt.At(rows); },
      room, limits);
}

}  // namespace

std::uint32_t BatchChoice::RowsIn(Phase phase) const {
  std::uint32_t sum = 0;
  for (const BatchRows& group : rows) sum += group.phase == phase ? group.rows : 0;
  return sum;
}

std::string ToString(const BatchChoice& choice) {
  std::string text = fmt::format("{} decodes", choice.RowsIn(Phase::kDecode));
  for (const BatchRows& group : choice.rows) {
    if (group.phase != Phase::kPrompt) continue;
    text += fmt::format(", prompt {}: {} rows", group.request, group.rows);
  }
  return text + fmt::format("; {:.1f} ms expected", choice.predicted_seconds * 1e3);
}

std::uint32_t PromptRowsBeside(double others_seconds, const RowSeconds& seconds, std::uint32_t most,
                               const BatchLimits& limits) {
  const std::uint32_t least = std::min(most, limits.least_chunk);
  const double of_least = seconds(least);
  if (of_least <= 0) return least;  // nobody has measured
  const double allowed =
      std::max(limits.target_seconds, others_seconds + limits.most_chunks * of_least);
  std::uint32_t fits = least, too_many = most + 1;
  while (too_many - fits > 1) {
    const std::uint32_t middle = fits + (too_many - fits) / 2;
    (others_seconds + seconds(middle) <= allowed * (1 + 1e-9) ? fits : too_many) = middle;
  }
  return fits;
}

BatchChoice ChooseBatch(std::span<const BatchCandidate> waiting, const RowSpeed& speed,
                        const BatchLimits& limits) {
  BatchChoice choice;
  std::vector<const BatchCandidate*> decodes = InPhase(waiting, Phase::kDecode);
  std::vector<const BatchCandidate*> prompts = InPhase(waiting, Phase::kPrompt);
  if (const std::uint32_t most = MostDecodes(decodes, prompts, limits); decodes.size() > most) {
    std::ranges::stable_sort(decodes, std::greater(), &BatchCandidate::passed_over);
    decodes.resize(most);
  }
  auto decode_rows = static_cast<std::uint32_t>(decodes.size());
  std::uint32_t for_guesses = limits.most_rows - decode_rows;
  if (!prompts.empty()) for_guesses -= std::min(for_guesses, RowsKeptFor(prompts, limits));
  for (const BatchCandidate* decode : decodes) {
    const std::uint32_t guesses = std::min(decode->guesses, for_guesses);
    choice.rows.push_back(
        {.request = decode->request, .phase = Phase::kDecode, .rows = 1, .guesses = guesses});
    for_guesses -= guesses;
    decode_rows += guesses;
  }

  std::ranges::stable_sort(prompts, std::less(), [&](const BatchCandidate* prompt) {
    const bool starving = prompt->passed_over >= limits.most_passed_over;
    const std::uint32_t waited = starving ? prompt->passed_over : 0;
    return std::tuple(std::numeric_limits<std::uint32_t>::max() - waited,
                      prompt->deadline.value_or(std::numeric_limits<Nanos>::max()));
  });
  std::uint32_t left = PromptRows(decode_rows, speed, limits);
  if (!prompts.empty() && prompts.front()->whole > left) {
    // The first one goes, and alone, whatever time that takes.
    left = std::min(prompts.front()->whole, limits.most_rows - decode_rows);
  }
  for (const BatchCandidate* prompt : prompts) {
    const std::uint32_t rows = std::min(left, prompt->prompt_left);
    if (rows == 0 || rows < prompt->whole) break;
    left -= rows;
    const std::uint32_t guesses = rows == prompt->prompt_left ? std::min(prompt->guesses, left) : 0;
    left -= guesses;
    choice.rows.push_back(
        {.request = prompt->request, .phase = Phase::kPrompt, .rows = rows, .guesses = guesses});
  }
  choice.predicted_seconds = speed.Predict(decode_rows, choice.RowsIn(Phase::kPrompt));
  return choice;
}

}  // namespace troupe
