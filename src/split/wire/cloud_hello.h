// What a cloud tells ends that ask whether it is there: what it has, and what it would take now.
// Pure. The format is docs/formats/end-cloud.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "split/wire/cloud_load.h"
#include "split/wire/model_proof.h"

namespace troupe {

struct CloudHello {
  ModelProof proof;
  std::uint32_t context = 0;    // tokens of a sequence
  std::uint32_t sequences = 1;  // answers at a time; others wait
  bool checks_drafts = false;   // of answers that it chooses, while it does
  // Tokens of prompts that are cut by layers, of which it has the last ones, at a time; 0: none.
  std::size_t cut_tokens = 0;
  bool goes_on_behind_cuts = false;  // also of answers of more than one token
  CloudLoad load;

  bool operator==(const CloudHello&) const = default;
};

std::string Encode(const CloudHello& hello);
Result<CloudHello> DecodeCloudHello(std::string_view text);

}  // namespace troupe
