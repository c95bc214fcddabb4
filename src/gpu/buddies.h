// BuddyMoE's substitution on a device: for each slot of a layer whose expert is missing, a resident
// one that stands in for it, decided where the router's choice lies, so that no choice has to go to
// the host and back. What is decided is the policy's to say (expert/substitution/buddies.h), which
// it is equal to slot by slot and count by count; why is in docs/design/gpu.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"
#include "gpu/kernel_source.h"

namespace troupe {

// As the policy's options and gates are called.
struct GpuBuddyRules {
  double tau = 0.5, temperature = 1, gamma = 2, beta = 1.5;
  std::uint32_t budget = 0, rho = 3, rank = 16;
  double eta = 0;
  bool best_first = false;
};

// The buddies of all experts, one layer after the other, best first: those of the expert at place i
// are [begins[i], begins[i + 1]) of the other two.
struct GpuBuddyLists {
  std::vector<std::uint32_t> begins, experts;
  std::vector<float> shares;
};

// What a router said of some tokens, and which experts are where, as bits of words.
struct GpuRoutedTokens {
  std::uint32_t layer = 0, experts = 0, top_k = 0, tokens = 0;
  std::span<const std::uint32_t> chosen;  // [token][slot]: different ones
  std::span<const float> weights;         // [token][slot]
  std::span<const float> scores;          // [token][expert], none negative; empty: not known
  std::span<const std::uint32_t> resident, missing;  // [expert / 32]: neither is on its way
};

class GpuBuddies {
 public:
  using Counts = std::array<std::uint32_t, kGpuBuddyCounts>;

  // kUnimplemented: the device has no doubles, which the gates are compared in. The device must
  // outlive it.
  static Result<GpuBuddies> Create(GpuDevice& device);

  // For what is answered from now on.
  Status SetLists(const GpuBuddyLists& lists);
  // Copied to where a router of the device would have left it; waits for that.
  Status SetTokens(const GpuRoutedTokens& routed);
  // Of the tokens that were set, into the device's memory.
  Result<GpuEventPtr> Answer(const GpuBuddyRules& rules, std::span<const GpuEventPtr> after);

  // After all that was begun: the experts, [token][slot], and what was counted since Create.
  Status Read(std::span<std::uint32_t> answers);
  Result<Counts> counts();

 private:
  explicit GpuBuddies(GpuDevice& device) : device_(&device) {}

  Status Put(std::unique_ptr<GpuBuffer>& buffer, std::span<const std::byte> bytes);

  GpuDevice* device_;
  std::unique_ptr<GpuKernel> kernel_;
  std::unique_ptr<GpuBuffer> begins_, list_experts_, shares_;
  std::unique_ptr<GpuBuffer> chosen_, weights_, scores_, resident_, missing_, answers_, counts_;
  std::uint32_t lists_ = 0;
  std::uint32_t layer_ = 0, experts_ = 0, top_k_ = 0, tokens_ = 0;
  bool has_scores_ = false;
};

}  // namespace troupe
