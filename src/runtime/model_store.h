// Opens the slow tier of a model's experts: its packed container, or the GGUF itself.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "gguf/reader.h"
#include "model/expert_layout.h"
#include "model/weight_checks.h"
#include "runtime/offloaded_experts.h"
#include "store/expert_store.h"

namespace troupe {

// The container to read experts from: `wanted` if it names one; the one beside the model if it is
// empty and there is one; else, and if it is "none", the empty path: the GGUF is read in place.
Result<std::string> FindContainer(const GgufModel& model, const std::string& wanted);

// The low copies of a container; fails if it has none, or `container` is empty.
Result<LowExperts> OpenLowExperts(const GgufModel& model, const ExpertLayouts& layouts,
                                  const std::string& container);

// `sums`: with which experts that are read in place are compared; null: nothing was recorded.
Result<std::unique_ptr<ExpertStore>> OpenModelStore(const GgufModel& model,
                                                    const ExpertLayouts& layouts,
                                                    const std::string& container,
                                                    std::shared_ptr<const WeightChecks> sums);

}  // namespace troupe
