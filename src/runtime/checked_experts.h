// Experts that are read in place, compared with what was recorded of their matrices when each is
// read for the first time: bytes that were read correctly once are read correctly again, or the
// read fails. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "expert/expert_id.h"
#include "model/expert_layout.h"
#include "model/weight_checks.h"
#include "store/gguf_store.h"
#include "store/verified_once.h"

namespace troupe {

class CheckedExperts final : public GgufStore::Checks {
 public:
  // Null `sums`: nothing was recorded, and nothing is compared.
  CheckedExperts(std::shared_ptr<const WeightChecks> sums, const ExpertLayouts& layouts);

  // Beside the sums.
  static Bytes BytesFor(const ExpertLayouts& layouts);

  // Its parts are gate, up and down as the file has them. The error names file, tensor and expert.
  std::unique_ptr<ArrivalCheck> Begin(ExpertId id) override;

  // Experts whose bytes were the recorded ones; each counts once.
  std::uint64_t verified() const override { return verified_.count(); }

 private:
  class Check;

  // A matrix of the file, and which of an expert's parts it consists of, in its order.
  struct Matrix {
    TensorInfo tensor;
    std::vector<std::uint8_t> parts;
  };

  static std::vector<Matrix> MatricesOf(const ExpertLayout& layout);
  static std::uint32_t ExpertsOf(const ExpertLayouts& layouts);
  std::size_t NumberOf(ExpertId id) const;

  std::shared_ptr<const WeightChecks> sums_;
  std::uint32_t experts_;                    // of a layer
  std::vector<std::vector<Matrix>> layers_;  // none of a layer without experts
  VerifiedOnce verified_;
};

}  // namespace troupe
