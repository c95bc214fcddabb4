// `troupe pull`: a model from those who keep it, into the folder where other commands find it.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "fetch/pull.h"
#include "gguf/header.h"
#include "io/byte_source.h"
#include "model/config.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/interrupt.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

// A file of which only the beginning is here.
class FirstBytes final : public ByteSource {
 public:
  FirstBytes(std::string name, std::span<const std::byte> first, std::uint64_t size)
      : name_(std::move(name)), first_(first), size_(size) {}

  std::string_view name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > first_.size() || out.size() > first_.size() - offset) {
      return Error(Code::kUnavailable, "{}: byte {} is not here yet", name_, first_.size());
    }
    std::ranges::copy(first_.subspan(offset, out.size()), out.begin());
    return OkStatus();
  }

 private:
  std::string name_;
  std::span<const std::byte> first_;
  std::uint64_t size_;
};

// Whether a model runs whose file begins so: false where more of it is needed to tell.
Result<bool> WouldRun(const std::string& what, std::span<const std::byte> first,
                      std::uint64_t bytes) {
  const auto refused = [](const Status& why) {
    return Error(why.code(), "{}; --force gets it anyway", why.message());
  };
  const Result<GgufHeader> header = ParseGguf(FirstBytes(what, first, bytes));
  if (!header.ok()) {
    const Code code = header.status().code();
    if (code == Code::kUnimplemented) return refused(header.status());
    return code != Code::kUnavailable;  // a damaged file is found by its checksum
  }
  // Further parts of a split model have tensors alone.
  const Result<std::uint64_t> part = header->metadata.GetUintOr("split.no", 0);
  if (!part.ok() || *part > 0) return true;
  if (header->metadata.Find("general.architecture") == nullptr) return true;
  const Result<ModelConfig> config = ReadModelConfig(header->metadata);
  if (!config.ok()) return refused(config.status());
  return true;
}

class PullCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options
        .AddParsed(
            "NAME",
            [this](const std::string& text) {
              TROUPE_ASSIGN_OR_RETURN(name_, ParseModelName(text));
              return OkStatus();
            },
            "hf.co/OWNER/REPO[:TYPE or :FILE], the address of a page of a model there, or a name "
            "of ollama's library: NAME[:TAG], ollama.com/OWNER/NAME[:TAG]")
        .Required()
        .Type("NAME");
    options
        .Add("--tries", options_.tries,
             "How often to ask in a row without a byte more, waiting twice as long each time (5)")
        .Between(1, 100)
        .Type("N");
    options.AddFlag("--force", force_,
                    "Get it even if its first bytes say that it cannot run here");
    AddJsonOption(options, json_);
  }

  Status Run() override;

 private:
  Json Record(const PullReport& report, double seconds) const;
  void Print(const PullReport& report, double seconds) const;

  ModelName name_;
  PullOptions options_;
  std::string json_;
  bool force_ = false;
};

Status PullCommand::Run() {
  TROUPE_ASSIGN_OR_RETURN(options_.settings, ReadFetchSettings());
  if (!force_) options_.look = WouldRun;
  const InterruptGuard guard;
  ProgressBar bar(fmt::format("pulling {}", name_.name));
  options_.go_on = [&bar](Bytes here, Bytes size) {
    if (size > Bytes()) bar.UpdateTransfer(here, size);
    return !InterruptGuard::interrupted();
  };
  options_.again = [this, &bar](int next_try, const Status& why) {
    if (::isatty(STDERR_FILENO) == 0) return;  // one line of why is enough for a log
    bar.Clear();
    Remark("trying again ({} of {}): {}\n", next_try, options_.tries, Printable(why.message()));
  };
  const Stopwatch watch;
  const Result<PullReport> report = Pull(name_, options_);
  bar.Clear();
  if (!report.ok() && report.status().code() == Code::kCancelled) {
    return Error(Code::kCancelled, "stopped; `troupe pull {}` goes on where it was",
                 name_.ToString());
  }
  TROUPE_RETURN_IF_ERROR(report.status());
  if (json_ != "-") Print(*report, watch.Seconds());
  return json_.empty() ? OkStatus() : WriteJson(Record(*report, watch.Seconds()), json_);
}

Json PullCommand::Record(const PullReport& report, double seconds) const {
  Json files = Json::Array();
  for (const PulledFile& file : report.model.record.files) {
    files.push_back({{"path", report.model.FilePath(file)},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256.empty() ? Json(nullptr) : Json(file.sha256)}});
  }
  Json record = {
      {"name", report.model.record.name},          {"path", report.model.path()},
      {"bytes", report.model.size().count()},      {"files_found", report.files_found},
      {"files_unchecked", report.unchecked},       {"bytes_fetched", report.downloads.fetched},
      {"bytes_found", report.downloads.found},     {"requests", report.web.requests},
      {"redirects", report.web.redirects},         {"requests_repeated", report.downloads.again},
      {"files_begun_anew", report.downloads.anew}, {"seconds", seconds}};
  record["files"] = std::move(files);
  return record;
}

void PullCommand::Print(const PullReport& report, double seconds) const {
  const PulledModel& model = report.model;
  const std::size_t files = model.record.files.size();
  const std::string name = Printable(model.record.name);
  if (report.files_found == files) {
    fmt::print("{} is here already: {} in {}\n", name, ToString(model.size()),
               Counted(files, "file"));
  } else {
    fmt::print("{} is here: {} in {}, {} fetched in {}\n", name, ToString(model.size()),
               Counted(files, "file"), ToString(Bytes(report.downloads.fetched)),
               TimeText(seconds));
  }
  fmt::print("run it:   troupe run {} --chat\n", name);
  fmt::print("it lies:  {}\n", Printable(model.path()));
  if (report.unchecked > 0) {
    fmt::print("no checksum is published of {}: only {} compared\n",
               Counted(report.unchecked, "file"),
               report.unchecked == 1 ? "its size was" : "their sizes were");
  }
}

}  // namespace

std::unique_ptr<Command> MakePullCommand() { return std::make_unique<PullCommand>(); }

}  // namespace troupe
