// Assigns each server's experts to its devices, and makes the repairs that unequal sizes need when
// what fits a server in bytes does not fit its devices. With equal sizes
// every set of at most SlotsOf experts can be packed and nothing is ever repaired.
#pragma once

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

// Each server's experts on its devices, the busy ones spread by the devices' speed. An expert that
// lies on a device in `before` stays on it, so that a new plan moves nothing within a server.
// Experts that fit on no device are dropped if others hold them, else brought elsewhere in the
// place of duplicates; an error if that fails, too.
Result<Placement> PackDevices(const PlacementProblem& problem, const HolderTable& holders,
                              const Placement* before = nullptr);

// Puts each expert that no device holds where the least is lost: into free memory, or in place of
// copies that other servers hold as well.
Status CoverMissing(const PlacementProblem& problem, Placement& placement);

// Fills the memory that is left on each server with the experts that its users activate most per
// byte, then those that all users do.
void FillFreeMemory(const PlacementProblem& problem, Placement& placement);

// Insert and erase for a device's sorted list.
void AddTo(std::vector<ExpertIndex>& device, ExpertIndex e);
void RemoveFrom(std::vector<ExpertIndex>& device, ExpertIndex e);

// Bytes that the experts of a device take.
std::uint64_t UsedBytes(const PlacementProblem& problem, const std::vector<ExpertIndex>& device);

}  // namespace troupe
