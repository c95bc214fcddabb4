// What goes through the layers together, as policies see it: groups of rows, each some consecutive
// tokens of one sequence. Who made the groups and where their bytes lie is model/batch.h's part.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

// Said by whoever feeds the tokens, never guessed from their number: a prompt's last chunk may be
// one token, and several sequences may decode in one pass.
enum class Phase : std::uint8_t { kPrompt, kDecode };

constexpr std::string_view ToString(Phase phase) {
  return phase == Phase::kPrompt ? "prompt" : "decode";
}

// A place among the sequences that an engine can hold at once. Small, and used again after its
// sequence has ended, so that tables by sequence are arrays.
using SequenceId = std::uint32_t;
// Who asked for the rows; what they cost is counted for this request.
using RequestId = std::uint64_t;

struct RowGroupFacts {
  SequenceId sequence = 0;
  RequestId request = 0;
  Phase phase = Phase::kDecode;
  // Every expert of these rows is answered exactly, even where the engine may lose quality.
  bool exact = false;
  std::uint32_t position = 0;  // of the first row in its sequence
  std::uint32_t rows = 0;
  // Of these rows the last ones are tokens of a draft: whether the text has them is known after the
  // pass. Nothing may be learned of the sequence from them before.
  std::uint32_t guessed = 0;

  std::uint32_t sure() const { return rows - guessed; }
  bool operator==(const RowGroupFacts&) const = default;
};

struct PassFacts {
  // Of the layers that the rows go through: the first one that has experts, and what is behind the
  // last one that has. Where that is the same number, none has.
  std::uint32_t first_layer = 0;
  std::uint32_t end_layer = ~0u;      // as of here and above: the model's last layer has some
  std::vector<RowGroupFacts> groups;  // rows lie in this order, group after group
  // Its rows only guess, from the experts in memory: what is not there is left out, nothing is
  // waited for, and nobody learns from it. All of its rows are guessed.
  bool drafts = false;

  bool HasExperts() const { return first_layer < end_layer; }
  std::uint32_t rows() const { return RowsIn(Phase::kPrompt) + RowsIn(Phase::kDecode); }
  std::uint32_t RowsIn(Phase phase) const {
    std::uint32_t rows = 0;
    for (const RowGroupFacts& group : groups) rows += group.phase == phase ? group.rows : 0;
    return rows;
  }
  bool HasPrompt() const { return RowsIn(Phase::kPrompt) > 0; }
  std::uint32_t guessed() const {
    std::uint32_t guessed = 0;
    for (const RowGroupFacts& group : groups) guessed += group.guessed;
    return guessed;
  }
};

// A pass of one group, for those who know of one sequence only.
inline PassFacts OneGroup(std::uint32_t first_layer, Phase phase, std::uint32_t rows,
                          std::uint32_t position = 0) {
  return {.first_layer = first_layer,
          .groups = {{.phase = phase, .position = position, .rows = rows}}};
}

}  // namespace troupe
