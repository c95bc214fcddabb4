// Keeps what was measured of this machine from one run to the next: cost models by number of
// threads and disk, in one file a machine under the user's cache folder
// (docs/formats/cost-model.md). A cache: a file that is damaged, or of another machine or version,
// is as good as none and is replaced; a folder that cannot be written is worth a warning and
// nothing more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/flow/cost_model.h"

namespace troupe {

// Figures of one machine mean nothing on another, nor with other kernels.
struct MachineId {
  std::string cpu;         // the model's name
  std::uint32_t cpus = 0;  // that are online
  std::string kernels;     // the instruction set they are compiled for

  std::string Digest() const;  // 16 digits, for a file name
  bool operator==(const MachineId&) const = default;
};

MachineId ThisMachine();

// $XDG_CACHE_HOME/troupe, or ~/.cache/troupe; empty if neither is known.
std::string CacheFolder();

class CostModelFile {
 public:
  // What the folder has for this machine. Never fails: see above.
  static CostModelFile Load(MachineId machine, std::string folder = CacheFolder());

  // Parts that were never measured are so in the model, too. `device` is the disk's: st_dev of a
  // file on it.
  CostModel Get(std::uint32_t threads, std::uint64_t device) const;
  // Replaces what Get gives; a disk that was not measured leaves what is known of it.
  void Put(std::uint32_t threads, std::uint64_t device, const CostModel& model);
  // Makes the folder if need be. A failure is one warning in the log, the first time.
  void Save() const;

  const std::string& path() const { return path_; }  // empty if there is no folder
  // What the file holds; Load reads it with the same code.
  std::string ToJson() const;
  Status FromJson(std::string_view text);

 private:
  struct Compute {
    RunningMean memory_bytes_per_second;
    std::vector<ExpertCost> experts;
  };

  MachineId machine_;
  std::string path_;
  std::map<std::uint32_t, Compute> compute_;  // by threads
  std::map<std::uint64_t, DiskCost> disks_;   // by device
};

}  // namespace troupe
