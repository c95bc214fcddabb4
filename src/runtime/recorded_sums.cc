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
  // `place`: file, byte and matrix.
  RecordedMatrix(std::string place, const std::string& sums, std::uint64_t recorded)
      : place_(std::move(place)), sums_(sums), recorded_(recorded) {}

  void Add(std::span<const std::byte> bytes) override { running_.Add(bytes); }

  Status Finish() override {
    const std::uint64_t found = running_.value();
    if (found == recorded_) return OkStatus();
    return DataLoss(
        "{}: checksum {:016x}, {:016x} expected by {}: it is damaged, or was changed (then `troupe "
        "pack` anew)",
        place_, found, recorded_, sums_);
  }

 private:
  std::string place_;
  const std::string& sums_;
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

RecordedSums::RecordedSums(const GgufModel& model, std::string path) : path_(std::move(path)) {
  for (const ReadFile& file : model.files()) files_.push_back(file.path());
}

std::string ChecksumsPathBeside(std::string_view model_path) {
  return PathBeside(model_path, ".checksums.json");
}

Bytes RecordedSums::BytesBeside(const GgufModel& model) {
  std::error_code ignored;
  if (!std::filesystem::exists(ChecksumsPathBeside(model.path()), ignored)) return Bytes();
  constexpr std::size_t kOfTensor = 192;  // node of the tree, name, list
  Bytes bytes;
  for (const TensorInfo& tensor : model.tensors()) {
    bytes += Bytes(kOfTensor + tensor.name.size() + tensor.MatrixCount() * sizeof(std::uint64_t));
  }
  return bytes;
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
  std::unique_ptr<RecordedSums> recorded(new RecordedSums(model, path));
  for (TensorChecksums& tensor : sums->tensors) {
    recorded->sums_.emplace(std::move(tensor.name), std::move(tensor.matrices));
  }
  return recorded;
}

std::unique_ptr<MatrixCheck> RecordedSums::Begin(const TensorInfo& tensor,
                                                 std::uint64_t matrix) const {
  const auto found = sums_.find(tensor.name);
  if (found == sums_.end() || matrix >= found->second.size()) return nullptr;
  const std::uint64_t at = tensor.offset + matrix * (tensor.bytes.count() / tensor.MatrixCount());
  std::string place = fmt::format("{}, byte {}: tensor '{}'", files_[tensor.file], at, tensor.name);
  if (found->second.size() > 1) place += fmt::format(", expert {}", matrix);
  return std::make_unique<RecordedMatrix>(std::move(place), path_, found->second[matrix]);
}

}  // namespace troupe
