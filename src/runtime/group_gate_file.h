// The group gate that calibration distilled of a model's routers (docs/formats/groups.md), and how
// well it stood in for them. Lies beside the model as readable JSON. Nothing reads it unless
// `--gate groups` was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/gate/group_agreement.h"
#include "expert/gate/group_gate.h"
#include "gguf/reader.h"
#include "model/config.h"

namespace troupe {

struct GroupGateFile {
  std::string fingerprint;  // of the model
  std::string text;         // that was read
  std::uint64_t tokens = 0;
  std::uint32_t model_layers = 0;  // with those that have no experts
  std::uint32_t top_k = 0;
  std::uint32_t looked = 0;  // groups that are looked into unless somebody says otherwise
  GroupGate gate;
  std::vector<GateAgreement> agreement;  // of the gate's layers, on tokens not learned from

  GateAgreement MeanAgreement() const;

  bool operator==(const GroupGateFile&) const = default;
};

// "m.gguf" gives "m.groups.json".
std::string GroupsPathFor(std::string_view model_path);

Status SaveGroups(const GroupGateFile& groups, const std::string& path);
// Refuses files of another format or version, and numbers that cannot be.
Result<GroupGateFile> LoadGroups(const std::string& path);

// "exact", "groups", "groups:looked=2:fusion=product".
Result<GateChoice> ParseGate(std::string_view text);

// What experts are to be chosen by, and the file of that: the one named, or that beside the model.
struct GateOptions {
  GateChoice choice;
  std::string file;
};

struct LoadedGate {
  GateChoice choice;  // with a number of groups
  GroupGateFile file;
};

// In one line, for plans.
std::string Describe(const LoadedGate& gate);

// REQUIRES: a choice that is not exact. Refuses models whose routers no group gate can replace,
// files of other models, and numbers of groups that do not suit the model.
Result<LoadedGate> LoadGate(const GateOptions& options, const GgufModel& model,
                            const ModelConfig& config);

}  // namespace troupe
