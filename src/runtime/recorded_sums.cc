#include "runtime/recorded_sums.h"

#include <filesystem>
#include <utility>

#include "base/log.h"
#include "io/text_file.h"
#include "runtime/container_path.h"
#include "store/model_checksums.h"
#include "store/running_checksum.h"

namespace troupe {
namespace {

// What sums of these tensors take as text, with room: more is of something else.
Bytes MostText(const GgufModel& model) {
  constexpr std::size_t kOfTensor = 64, kOfSum = 24;
  Bytes most = 1_MiB;
  for (const TensorInfo& tensor : model.tensors()) {
    most += Bytes(tensor.name.size() + kOfTensor + kOfSum * tensor.MatrixCount());
  }
  return most;
}

class RecordedMatrix final : public MatrixCheck {
 public:
  RecordedMatrix(const std::string& model, const std::string& path, std::string what,
                 std::uint64_t recorded)
      : model_(model), path_(path), what_(std::move(what)), recorded_(recorded) {}

  void Add(std::span<const std::byte> bytes) override { running_.Add(bytes); }

  Status Finish() override {
    if (running_.value() == recorded_) return OkStatus();
    return Error(
        Code::kDataLoss,
        "{}: {} has not the bytes that {} recorded: it is damaged, or another model's (then "
        "`troupe pack` anew)",
        model_, what_, path_);
  }

 private:
  const std::string& model_;
  const std::string& path_;
  std::string what_;
  std::uint64_t recorded_;
  RunningChecksum running_;
};

bool AreOf(const ModelChecksums& sums, const GgufModel& model) {
  if (sums.tensors.size() != model.tensors().size()) return false;
  for (const TensorChecksums& tensor : sums.tensors) {
    const TensorInfo* found = model.Find(tensor.name);
    if (found == nullptr || found->MatrixCount() != tensor.matrices.size()) return false;
  }
  return true;
}

}  // namespace

std::string ChecksumsPathBeside(std::string_view model_path) {
  return PathBeside(model_path, ".checksums.json");
}

std::unique_ptr<RecordedSums> RecordedSums::Beside(const GgufModel& model) {
  const std::string path = ChecksumsPathBeside(model.path());
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  const Result<std::string> text = ReadWholeText(path, MostText(model));
  Result<ModelChecksums> sums =
      text.ok() ? ParseChecksums(path, *text) : Result<ModelChecksums>(text.status());
  if (!sums.ok()) {
    LogWarning("weights are not compared: {}", sums.status().message());
    return nullptr;
  }
  if (!AreOf(*sums, model)) {
    LogWarning("weights are not compared: {}: checksums of another model than {}", path,
               model.path());
    return nullptr;
  }
  std::unique_ptr<RecordedSums> recorded(new RecordedSums(model.path(), path));
  for (TensorChecksums& tensor : sums->tensors) {
    recorded->sums_.emplace(std::move(tensor.name), std::move(tensor.matrices));
  }
  return recorded;
}

std::unique_ptr<MatrixCheck> RecordedSums::Begin(const TensorInfo& tensor,
                                                 std::uint64_t matrix) const {
  const auto found = sums_.find(tensor.name);
  if (found == sums_.end() || matrix >= found->second.size()) return nullptr;
  const std::string what = found->second.size() == 1
                               ? fmt::format("tensor '{}'", tensor.name)
                               : fmt::format("tensor '{}', expert {}", tensor.name, matrix);
  return std::make_unique<RecordedMatrix>(model_, path_, what, found->second[matrix]);
}

}  // namespace troupe
