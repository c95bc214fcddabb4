// Whatever bytes call themselves a model: opening, configuration, vocabulary, plan and the place of
// every tensor either succeed or say what is wrong, without reading a weight.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "gguf/reader.h"
#include "model/inspect.h"
#include "model/weight_loader.h"
#include "runtime/engine_plan.h"
#include "runtime/vocab_loader.h"

namespace troupe {
namespace {

void OpenAsModel(const std::string& path) {
  const Result<GgufModel> model = GgufModel::Open(path);
  if (!model.ok()) return;
  (void)InspectModel(*model).ok();
  (void)LoadVocab(model->metadata(), path).ok();
  const Result<ModelConfig> config = ReadModelConfig(model->metadata());
  if (!config.ok()) return;
  (void)Describe(*config);
  const Result<WeightMeasure> weights = MeasureWeights(*model, *config);
  if (!weights.ok()) return;
  const Result<EnginePlan> plan =
      PlanEngine(*config, *weights, {.cpus = 2, .available = 1_GiB, .program = 16_MiB}, {});
  if (plan.ok()) (void)Describe(*plan);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::UniqueFd file(::memfd_create("model", 0));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0 ||
      ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) {
    return -1;
  }
  troupe::OpenAsModel("/proc/self/fd/" + std::to_string(file.get()));
  return 0;
}
