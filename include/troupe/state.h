// What a model is doing between two passes, for those who show it to people: where its experts are,
// how often they are used, and how far each request is. Sums are in Metrics (model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/bytes.h"

namespace troupe {

struct RequestState {
  enum class Stage {
    kWaiting,  // for memory, or for a pass
    kReading,  // its prompt
    kDecoding,
  };

  std::uint64_t id = 0;
  Stage stage = Stage::kWaiting;
  std::size_t prompt_tokens = 0;
  std::size_t prompt_read = 0;  // of them
  std::size_t generated_tokens = 0;
  double seconds = 0;  // since it was started
};

enum class ExpertPlace : std::uint8_t {
  kAbsent,
  kLoading,
  kInMemory,
  kLowInMemory,  // in a copy of lower precision
};

// Of the layers that have experts.
struct ExpertMap {
  std::uint32_t layers = 0;                  // that have experts
  std::vector<std::uint32_t> layer_numbers;  // of these, in the model
  std::uint32_t experts = 0;                 // of a layer
  // An entry for each expert, layer after layer.
  std::vector<ExpertPlace> places;
  // The share of the last tokens (some 64) that chose the expert, 0 to 1. Counting begins with the
  // first look at a model's state, and stops some time after the last.
  std::vector<float> heat;
};

// A card whose memory holds experts, too, as of the last pass.
struct CardState {
  std::string name;  // empty: there is no card
  std::uint32_t slots = 0;
  std::uint32_t held = 0;  // slots that hold an expert
  Bytes memory;            // that is taken of the card
};

struct ModelState {
  std::vector<RequestState> requests;  // those that run first; the first 256
  ExpertMap experts;
};

}  // namespace troupe
