#include "gpu/buddies.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "gpu/device_copies.h"

namespace troupe {
namespace {

std::uint64_t BitsIn(double number) { return std::bit_cast<std::uint64_t>(number); }

std::size_t WordsFor(std::uint32_t experts) { return (experts + 31) / 32; }

}  // namespace

Result<GpuBuddies> GpuBuddies::Create(GpuDevice& device) {
  if (!device.info().has_doubles) {
    return Error(Code::kUnimplemented, "{}: computes with no doubles, in which gates are compared",
                 device.info().name);
  }
  GpuBuddies buddies(device);
  TROUPE_ASSIGN_OR_RETURN(auto kernels, device.Build(BuddySource(), kBuddyKernels));
  buddies.kernel_ = std::move(kernels[0]);
  constexpr Counts kNone = {};
  TROUPE_ASSIGN_OR_RETURN(buddies.counts_, BufferWith(device, std::as_bytes(std::span(kNone))));
  return buddies;
}

// Into the buffer there is, if that is large enough.
Status GpuBuddies::Put(std::unique_ptr<GpuBuffer>& buffer, std::span<const std::byte> bytes) {
  if (buffer == nullptr || buffer->size() < Bytes(bytes.size())) {
    TROUPE_ASSIGN_OR_RETURN(buffer, BufferWith(*device_, bytes));
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied,
                          device_->CopyIn(GpuLane::kCompute, bytes, *buffer, Bytes(0), {}));
  return copied->Wait();
}

Status GpuBuddies::SetLists(const GpuBuddyLists& lists) {
  TROUPE_CHECK(!lists.begins.empty() && lists.begins.back() == lists.experts.size());
  TROUPE_CHECK(lists.experts.size() == lists.shares.size());
  TROUPE_CHECK(std::ranges::all_of(lists.experts, [](auto e) { return e < kGpuBuddyExperts; }));
  lists_ = static_cast<std::uint32_t>(lists.begins.size() - 1);
  TROUPE_RETURN_IF_ERROR(Put(begins_, std::as_bytes(std::span(lists.begins))));
  // A model may have no buddies at all: a buffer of no bytes is none that a device gives.
  const std::uint32_t none = 0;
  const auto bytes = [&none](const auto& values) {
    return values.empty() ? std::as_bytes(std::span(&none, 1)) : std::as_bytes(std::span(values));
  };
  TROUPE_RETURN_IF_ERROR(Put(list_experts_, bytes(lists.experts)));
  return Put(shares_, bytes(lists.shares));
}

Status GpuBuddies::SetTokens(const GpuRoutedTokens& routed) {
  const std::size_t slots = std::size_t{routed.tokens} * routed.top_k;
  TROUPE_CHECK(routed.experts > 0 && routed.experts <= kGpuBuddyExperts);
  TROUPE_CHECK(routed.layer < lists_ / routed.experts);
  TROUPE_CHECK(routed.top_k > 0 && routed.top_k <= kGpuBuddyItems && routed.tokens > 0);
  TROUPE_CHECK(routed.chosen.size() == slots && routed.weights.size() == slots);
  TROUPE_CHECK(std::ranges::all_of(routed.chosen, [&](auto e) { return e < routed.experts; }));
  TROUPE_CHECK(routed.resident.size() == WordsFor(routed.experts) &&
               routed.missing.size() == WordsFor(routed.experts));
  layer_ = routed.layer;
  experts_ = routed.experts;
  top_k_ = routed.top_k;
  tokens_ = routed.tokens;
  has_scores_ = !routed.scores.empty();
  TROUPE_CHECK(!has_scores_ || routed.scores.size() == std::size_t{tokens_} * experts_);
  TROUPE_RETURN_IF_ERROR(Put(chosen_, std::as_bytes(routed.chosen)));
  TROUPE_RETURN_IF_ERROR(Put(weights_, std::as_bytes(routed.weights)));
  if (has_scores_) TROUPE_RETURN_IF_ERROR(Put(scores_, std::as_bytes(routed.scores)));
  TROUPE_RETURN_IF_ERROR(Put(resident_, std::as_bytes(routed.resident)));
  TROUPE_RETURN_IF_ERROR(Put(missing_, std::as_bytes(routed.missing)));
  if (answers_ != nullptr && answers_->size() >= Bytes(slots * sizeof(std::uint32_t))) {
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(answers_, device_->Allocate(Bytes(slots * sizeof(std::uint32_t))));
  return OkStatus();
}

Result<GpuEventPtr> GpuBuddies::Answer(const GpuBuddyRules& rules,
                                       std::span<const GpuEventPtr> after) {
  TROUPE_CHECK(tokens_ > 0 && layer_ < lists_ / experts_);
  const GpuBuffer* const scores = has_scores_ ? scores_.get() : nullptr;
  return device_->Launch({.kernel = kernel_.get(),
                          .arguments = {experts_,
                                        top_k_,
                                        tokens_,
                                        chosen_.get(),
                                        weights_.get(),
                                        scores,
                                        resident_.get(),
                                        missing_.get(),
                                        begins_.get(),
                                        layer_ * experts_,
                                        list_experts_.get(),
                                        shares_.get(),
                                        std::uint32_t{rules.best_first},
                                        rules.rho,
                                        rules.rank,
                                        BitsIn(rules.eta),
                                        BitsIn(rules.tau),
                                        BitsIn(rules.temperature),
                                        BitsIn(rules.gamma),
                                        BitsIn(rules.beta),
                                        rules.budget,
                                        answers_.get(),
                                        counts_.get()},
                          .groups = {tokens_, 1},
                          .group_size = kGpuBuddyItems},
                         after);
}

Status GpuBuddies::Read(std::span<std::uint32_t> answers) {
  TROUPE_CHECK(answers.size() == std::size_t{tokens_} * top_k_);
  return ReadNow(*device_, *answers_, std::as_writable_bytes(answers));
}

Result<GpuBuddies::Counts> GpuBuddies::counts() {
  Counts counts{};
  TROUPE_RETURN_IF_ERROR(ReadNow(*device_, *counts_, std::as_writable_bytes(std::span(counts))));
  return counts;
}

}  // namespace troupe
