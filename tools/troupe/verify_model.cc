#include "troupe/verify_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "fetch/check_pulled.h"
#include "forge/check_values.h"
#include "io/file.h"
#include "io/text_file.h"
#include "store/model_checksums.h"
#include "store/verify_container.h"
#include "troupe/counted.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

constexpr Bytes kLargestChecksums = 256_MiB;
constexpr std::size_t kMostLinesOfDamage = 20;

Status VerifyTensors(const GgufModel& model, const std::string& path, std::size_t threads,
                     VerifyReport& report) {
  report.tensors = model.tensors().size();
  report.has_checksums = IdentityOf(path).has_value();
  if (!report.has_checksums) {
    if (report.pulled_files > 0) return OkStatus();  // the whole file was compared
    ProgressBar bar("looking at weights");
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> odd,
                            PartsWithoutNumbers(model, threads, bar.Callback()));
    for (const std::string& part : odd) {
      report.damaged.push_back(part + " has weights that are no numbers");
    }
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kLargestChecksums));
  TROUPE_ASSIGN_OR_RETURN(const ModelChecksums recorded, ParseChecksums(path, text));
  ProgressBar bar("comparing tensors");
  TROUPE_ASSIGN_OR_RETURN(const ModelChecksums found, SumModel(model, threads, bar.Callback()));
  for (std::string& part : DamagedParts(recorded, found)) report.damaged.push_back(std::move(part));
  return OkStatus();
}

Status VerifyExperts(const GgufModel& model, const std::string& container, std::size_t threads,
                     VerifyReport& report) {
  if (!IdentityOf(container)) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  ProgressBar bar("comparing experts");
  const Result<ContainerVerdict> verdict =
      VerifyContainer(container, fingerprint, threads, bar.Callback());
  if (!verdict.ok()) {
    report.damaged.push_back(verdict.status().message());
    return OkStatus();
  }
  report.experts = verdict->experts;
  report.model_is_whole = report.damaged.empty();
  if (!verdict->of_model && report.damaged.empty()) {  // otherwise it is damaged since then
    report.damaged.push_back(fmt::format("{} was packed from another model", container));
  }
  for (const std::string& expert : verdict->damaged) {
    report.damaged.push_back(fmt::format("{}: {}", container, expert));
  }
  return OkStatus();
}

Status VerifyFiles(const GgufModel& model, VerifyReport& report) {
  ProgressBar bar("comparing files");
  TROUPE_ASSIGN_OR_RETURN(const std::optional<PulledVerdict> verdict,
                          CheckPulled(model.path(), bar.Callback()));
  if (!verdict) return OkStatus();
  report.pulled_files = verdict->files;
  for (const std::string& path : verdict->damaged) {
    report.damaged.push_back(
        fmt::format("{} has not the bytes that are published of {}", path, verdict->name));
  }
  return OkStatus();
}

// "its 34 tensors and 256 packed experts"
std::string WhatWasCompared(const VerifyReport& report) {
  std::string what = report.has_checksums ? Counted(report.tensors, "tensor") : std::string();
  if (report.pulled_files > 0) {
    what +=
        fmt::format("{}{}", what.empty() ? "" : ", ", Counted(report.pulled_files, "pulled file"));
  }
  if (report.experts > 0) {
    what +=
        fmt::format("{}{}", what.empty() ? "" : " and ", Counted(report.experts, "packed expert"));
  }
  return what;
}

}  // namespace

std::string ChecksumsPathFor(const std::string& container) {
  constexpr std::string_view kContainerEnding = ".experts";
  std::string path = container;
  if (path.ends_with(kContainerEnding)) path.resize(path.size() - kContainerEnding.size());
  return path + ".checksums.json";
}

Status RefuseDamaged(const GgufModel& model, std::size_t threads, const std::string& path) {
  if (!IdentityOf(path)) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kLargestChecksums));
  const Result<ModelChecksums> recorded = ParseChecksums(path, text);
  if (!recorded.ok()) return OkStatus();  // they are written anew
  ProgressBar bar("comparing tensors");
  TROUPE_ASSIGN_OR_RETURN(const ModelChecksums found, SumModel(model, threads, bar.Callback()));
  const std::vector<std::string> damaged = DamagedParts(*recorded, found);
  if (damaged.empty() || damaged.size() > model.tensors().size() / 2) return OkStatus();
  return DataLoss(
      "{}: {} is not what {} recorded: the file is damaged, or was changed on purpose (then remove "
      "{})",
      model.path(), damaged.front(), path, path);
}

Status WriteChecksums(const GgufModel& model, std::size_t threads, const std::string& path) {
  ProgressBar bar("checksums");
  TROUPE_ASSIGN_OR_RETURN(const ModelChecksums sums, SumModel(model, threads, bar.Callback()));
  return WriteWholeText(path, ChecksumsText(sums));
}

Result<VerifyReport> VerifyModel(const GgufModel& model, const std::string& container,
                                 std::size_t threads) {
  VerifyReport report = {.model = model.path()};
  TROUPE_RETURN_IF_ERROR(VerifyFiles(model, report));
  TROUPE_RETURN_IF_ERROR(VerifyTensors(model, ChecksumsPathFor(container), threads, report));
  TROUPE_RETURN_IF_ERROR(VerifyExperts(model, container, threads, report));
  return report;
}

void Print(const VerifyReport& report) {
  const std::string name = Printable(report.model);
  if (!report.damaged.empty()) {
    fmt::print("damaged: {} of {}\n", Counted(report.damaged.size(), "part"), name);
    for (std::size_t i = 0; i < std::min(report.damaged.size(), kMostLinesOfDamage); ++i) {
      fmt::print("  {}\n", Printable(report.damaged[i]));
    }
    if (report.damaged.size() > kMostLinesOfDamage) {
      fmt::print("  and {} more\n", report.damaged.size() - kMostLinesOfDamage);
    }
    if (report.model_is_whole) {
      fmt::print("{} itself is whole: `troupe pack` makes the packed experts anew\n", name);
    }
  } else if (report.proven()) {
    fmt::print("whole: every byte of {} is what was recorded ({})\n", name,
               WhatWasCompared(report));
  } else {
    fmt::print("not proven: nobody has recorded checksums of {}\n", name);
  }
  if (report.proven()) return;
  fmt::print("Looked at: offsets and sizes of {}, and that every weight is a number{}.\n",
             Counted(report.tensors, "tensor"),
             report.experts > 0
                 ? fmt::format("; {} compared", Counted(report.experts, "packed expert"))
                 : "");
  fmt::print("`troupe pack` records checksums of a model as it is then.\n");
}

Json ToJson(const VerifyReport& report) {
  return {{"proven", report.proven()},
          {"tensors", report.tensors},
          {"tensors_have_checksums", report.has_checksums},
          {"packed_experts", report.experts},
          {"pulled_files", report.pulled_files},
          {"damaged", report.damaged}};
}

Status OutcomeOf(const VerifyReport& report) {
  if (report.damaged.empty()) return OkStatus();
  return DataLoss("{}: {} damaged, the first is {}", report.model,
                  Counted(report.damaged.size(), "part"), report.damaged.front());
}

}  // namespace troupe
