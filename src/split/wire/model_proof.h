// By what an end and a cloud know that they would say the same: the version of their talk, the
// model's fingerprint and the digest of what this machine's kernels compute (as nodes of a cluster
// do, docs/design/cluster.md). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/json_value.h"
#include "base/status.h"

namespace troupe {

inline constexpr std::uint32_t kSplitWire = 6;  // raised by each change of the format

struct ModelProof {
  std::uint32_t wire = kSplitWire;
  std::array<std::uint64_t, 2> model = {};  // the words of its fingerprint
  std::uint64_t arithmetic = 0;             // ArithmeticDigest

  bool operator==(const ModelProof&) const = default;
};

// kFailedPrecondition: the other side is not one that says the same. `who` it is: "the cloud".
Status CheckFits(const ModelProof& own, const ModelProof& other, std::string_view who);

Json Record(const ModelProof& proof);
ModelProof ReadModelProof(const JsonValue& json);  // in a reader of JSON (base/json_value.h)

}  // namespace troupe
