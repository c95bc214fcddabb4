#include "store/model_checksums.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/first_error.h"
#include "base/json_value.h"
#include "base/thread_pool.h"
#include "store/container_format.h"
#include "store/running_checksum.h"

namespace troupe {
namespace {

constexpr std::uint64_t kSumPieceBytes = 1 << 20;
constexpr std::size_t kTasksAtOnce = 64;  // between two calls of go_on
constexpr std::string_view kChecksumsFormat = "troupe checksums";

// A matrix of a tensor, or what lies between the tensors of a file.
struct SumTask {
  std::uint32_t file = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // offset, bytes
  std::uint64_t* sum = nullptr;

  Bytes bytes() const {
    Bytes all;
    for (const auto& [offset, length] : ranges) all += Bytes(length);
    return all;
  }
};

// Each file without the tensors in it, in order.
SumTask TaskBetween(const GgufModel& model, std::uint32_t file, std::uint64_t& sum) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.file == file) taken.emplace_back(tensor.offset, tensor.bytes.count());
  }
  std::ranges::sort(taken);
  SumTask task = {.file = file, .ranges = {}, .sum = &sum};
  std::uint64_t at = 0;
  for (const auto& [offset, bytes] : taken) {
    if (offset > at) task.ranges.emplace_back(at, offset - at);
    at = std::max(at, offset + bytes);
  }
  const std::uint64_t end = model.files()[file].size();
  if (end > at) task.ranges.emplace_back(at, end - at);
  return task;
}

Status RunSumTask(const GgufModel& model, const SumTask& task, std::vector<std::byte>& buffer) {
  RunningChecksum checksum;
  buffer.resize(kSumPieceBytes);
  for (const auto& [offset, bytes] : task.ranges) {
    for (std::uint64_t at = 0; at < bytes; at += kSumPieceBytes) {
      const auto piece = std::span(buffer).first(std::min(kSumPieceBytes, bytes - at));
      TROUPE_RETURN_IF_ERROR(model.files()[task.file].ReadAt(offset + at, piece));
      checksum.Add(piece);
    }
  }
  *task.sum = checksum.value();
  return OkStatus();
}

std::string HexOf(std::uint64_t sum) { return fmt::format("{:016x}", sum); }

std::uint64_t SumOf(const JsonValue& json) {
  const std::string text = json.String();
  std::uint64_t sum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) {
    json.Fail("16 hexadecimal digits");
  }
  return sum;
}

std::vector<std::uint64_t> SumsOf(const JsonValue& json) {
  std::vector<std::uint64_t> sums;
  for (std::size_t i = 0; i < json.size(); ++i) sums.push_back(SumOf(json.At(i)));
  return sums;
}

Json SumsAsJson(const std::vector<std::uint64_t>& sums) {
  Json list = Json::Array();
  for (const std::uint64_t sum : sums) list.push_back(HexOf(sum));
  return list;
}

ModelChecksums ReadChecksums(const JsonValue& root) {
  if (root.At("format").String() != kChecksumsFormat) root.At("format").Fail("troupe checksums");
  root.At("version").Count(1, 1);
  ModelChecksums checksums;
  checksums.between = SumsOf(root.At("between"));
  const JsonValue tensors = root.At("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorChecksums& tensor = checksums.tensors.emplace_back();
    tensor.name = tensors.At(i).At("name").String();
    tensor.matrices = SumsOf(tensors.At(i).At("xxh3"));
  }
  return checksums;
}

void CompareTensor(const TensorChecksums& was, const TensorChecksums& is,
                   std::vector<std::string>& damaged) {
  if (was.matrices.size() != is.matrices.size()) {
    damaged.push_back(fmt::format("tensor '{}': {} matrices, {} before", is.name,
                                  is.matrices.size(), was.matrices.size()));
    return;
  }
  for (std::size_t m = 0; m < is.matrices.size(); ++m) {
    if (was.matrices[m] == is.matrices[m]) continue;
    damaged.push_back(is.matrices.size() == 1 ? fmt::format("tensor '{}'", is.name)
                                              : fmt::format("tensor '{}': expert {} of {}", is.name,
                                                            m, is.matrices.size()));
  }
}

}  // namespace

Result<ModelChecksums> SumModel(const GgufModel& model, std::size_t threads,
                                const std::function<bool(Bytes done, Bytes total)>& go_on) {
  ModelChecksums sums;
  sums.between.resize(model.files().size());
  std::vector<SumTask> tasks;
  for (std::uint32_t file = 0; file < sums.between.size(); ++file) {
    tasks.push_back(TaskBetween(model, file, sums.between[file]));
  }
  for (const TensorInfo& tensor : model.tensors()) {
    sums.tensors.push_back({tensor.name, std::vector<std::uint64_t>(tensor.MatrixCount())});
  }
  for (std::size_t t = 0; t < sums.tensors.size(); ++t) {
    const TensorInfo& tensor = model.tensors()[t];
    const std::uint64_t bytes = tensor.bytes.count() / tensor.MatrixCount();
    for (std::uint64_t m = 0; m < tensor.MatrixCount(); ++m) {
      tasks.push_back(
          {tensor.file, {{tensor.offset + m * bytes, bytes}}, &sums.tensors[t].matrices[m]});
    }
  }
  Bytes done, total;
  for (const SumTask& task : tasks) total += task.bytes();
  ThreadPool pool(threads);
  std::vector<std::vector<std::byte>> buffers(pool.threads());
  for (std::size_t first = 0; first < tasks.size(); first += kTasksAtOnce) {
    const std::size_t count = std::min(kTasksAtOnce, tasks.size() - first);
    FirstError error;
    pool.Run(count, [&](std::size_t task, std::size_t thread) {
      error.Note(task, RunSumTask(model, tasks[first + task], buffers[thread]));
    });
    TROUPE_RETURN_IF_ERROR(error.Take());
    for (std::size_t i = first; i < first + count; ++i) done += tasks[i].bytes();
    if (go_on && !go_on(done, total)) return Error(Code::kCancelled, "stopped");
  }
  return sums;
}

std::vector<std::string> DamagedParts(const ModelChecksums& recorded, const ModelChecksums& found) {
  std::vector<std::string> damaged;
  if (recorded.between.size() != found.between.size()) {
    damaged.push_back(
        fmt::format("{} files, {} before", found.between.size(), recorded.between.size()));
  }
  const std::size_t files = std::min(recorded.between.size(), found.between.size());
  for (std::size_t i = 0; i < files; ++i) {
    if (recorded.between[i] == found.between[i]) continue;
    damaged.push_back(
        fmt::format("the header of file {}, or what lies between its tensors", i + 1));
  }
  std::map<std::string_view, const TensorChecksums*> left;
  for (const TensorChecksums& tensor : recorded.tensors) left[tensor.name] = &tensor;
  for (const TensorChecksums& tensor : found.tensors) {
    const auto was = left.find(tensor.name);
    if (was == left.end()) {
      damaged.push_back(fmt::format("tensor '{}', which was not there", tensor.name));
      continue;
    }
    CompareTensor(*was->second, tensor, damaged);
    left.erase(was);
  }
  for (const auto& [name, tensor] : left) {
    damaged.push_back(fmt::format("tensor '{}', which is gone", name));
  }
  return damaged;
}

std::string ChecksumsText(const ModelChecksums& checksums) {
  Json json = {{"format", kChecksumsFormat}, {"version", 1}};
  json["between"] = SumsAsJson(checksums.between);
  Json tensors = Json::Array();
  for (const TensorChecksums& tensor : checksums.tensors) {
    tensors.push_back({{"name", tensor.name}, {"xxh3", SumsAsJson(tensor.matrices)}});
  }
  json["tensors"] = std::move(tensors);
  return json.Dump() + "\n";
}

Result<ModelChecksums> ParseChecksums(const std::string& name, std::string_view text) {
  return ReadJson<ModelChecksums>(name, text, ReadChecksums);
}

}  // namespace troupe
