// What this machine's costs are: remembered where they were measured before (cost_model_file.h),
// measured where they were not (probe.h), and corrected by what runs see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "expert/flow/cost_model.h"
#include "io/async_reader.h"
#include "machine/cost_model_file.h"
#include "machine/probe.h"
#include "model/expert_layout.h"
#include "runtime/engine.h"
#include "store/expert_loader.h"

namespace troupe {

struct CostQuestion {
  std::uint32_t threads = 1;
  std::vector<ExpertLayout> shapes;  // of which experts' times are asked
  std::string disk_file;             // on the disk that is asked about; empty: about none
  ReaderOptions reader;
  bool fresh = false;                // measures again what is known
  double seconds_for_experts = 0.8;  // all shapes together
  // That measuring may take. With less than kProbeMemory its figures hold for this once: they are
  // not saved, as they may be too good.
  Bytes memory = kProbeMemory;
};

struct MachineCosts {
  CostModel model;
  std::uint64_t device = 0;  // of disk_file
  // What was measured now rather than remembered.
  bool memory_measured = false, disk_measured = false;
  std::vector<std::string> shapes_measured;
  bool saved = false;  // what was measured now: runs know it

  bool AnyMeasured() const { return memory_measured || disk_measured || !shapes_measured.empty(); }
};

// Saves what it measured, unless the memory was short.
Result<MachineCosts> AskCosts(const CostQuestion& question, CostModelFile& file);

// What was measured of this machine and the disk of a file before; measures nothing. Of a file that
// cannot be opened nothing is known. Without one it is the machine alone that is asked about.
CostModel RememberedCosts(std::uint32_t threads, const std::string& disk_file,
                          const CostModelFile& file = CostModelFile::Load(ThisMachine()));

// Tokens that passed the model one by one, all of their experts computed.
struct TokensSeen {
  std::uint64_t tokens = 0;
  double seconds = 0;
  double stall_seconds = 0;  // of these, in which there was nothing to compute
  Bytes touched;             // weights a token reads
};

// Folds the speed at which a run's reads came into the model.
void UpdateFromRun(CostModel& model, const LoaderStats& stats);
// And what its tokens took: an expert's share is that of its bytes. Says nothing of shapes that
// were never measured, or if the tokens were few.
void UpdateFromTokens(CostModel& model, const ExpertLayouts& layouts, const TokensSeen& seen);

// The same with what is saved, for the end of a run. Does nothing of what was never probed, if
// every expert was in memory, and behind a link that stands in for another one.
void RememberRun(const Engine& engine, const TokensSeen& seen,
                 CostModelFile file = CostModelFile::Load(ThisMachine()));

}  // namespace troupe
