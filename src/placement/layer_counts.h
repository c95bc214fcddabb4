// Algorithm 1 of DanceMoE: how many experts of each layer a server holds, by the entropy of what
// its users activate, then as many of each layer in all as the layer has. Which ones: dancemoe.cc.
//
// What the paper leaves open, and what is done here (docs/design/placement.md has the reasons):
// - M_n / m_e is the number of experts that the server's devices hold: 1.5 and 1.5 make 2, not 3.
//   With unequal sizes m_e is the mean size, and the counts are trimmed when devices are packed.
// - A server holds an expert once, so N_{n,l} stops at E_l.
// - Rounding down leaves slots over. They go first to layers that lack coverage, then to those that
//   lost most to rounding.
// - "Over-provisioned" l' means more than E_l' in all: the printed arg max alone could take from a
//   layer that then lacks coverage itself, forever. Ties go to the first layer.
// - The while loop stops at "at least E_l"; the prose's "= E_l" would forbid every duplicate.
// - No activations, or none with entropy: all layers count alike.
#pragma once

#include <span>
#include <vector>

#include "placement/problem.h"

namespace troupe {

// Shannon entropy in bits of what the frequencies say; 0 if they are all zero.
double ActivationEntropy(std::span<const double> frequencies);

// [server][layer].
using LayerCounts = std::vector<std::vector<std::uint32_t>>;
LayerCounts CountExpertsPerLayer(const PlacementProblem& problem);

}  // namespace troupe
