// `troupe list`: the models that were got, and whether they are complete.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "base/printable.h"
#include "fetch/fetch_settings.h"
#include "fetch/model_folder.h"
#include "troupe/commands.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/options.h"

namespace troupe {
namespace {

// Of what is here of a model that is not complete.
std::string StateOf(const PulledModel& model) {
  if (model.whole()) return "complete";
  return fmt::format("{:.0f} % here", 100 * AsDouble(model.here) / AsDouble(model.size()));
}

// "2026-11-28", where this machine is.
std::string DayOf(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  std::array<char, 16> text = {};
  if (::localtime_r(&time, &parts) == nullptr) return "";
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts));
}

// "experts 4.1 GiB, profile"; "-": nothing.
std::string BesideText(const PulledModel& model) {
  constexpr Bytes kWorthSaying = 1_MiB;
  std::string text;
  for (const FileBeside& file : FilesBeside(model)) {
    if (!text.empty()) text += ", ";
    text += Printable(file.ending);
    if (file.bytes >= kWorthSaying) text += " " + ToString(file.bytes);
  }
  return text.empty() ? "-" : text;
}

class ListCommand final : public Command {
 public:
  void AddOptions(Options& options) override { AddJsonOption(options, json_); }

  Status Run() override {
    const std::string folder = ModelFolder();
    const std::vector<PulledModel> models =
        folder.empty() ? std::vector<PulledModel>() : ListModels(folder);
    if (json_ != "-") Print(folder, models);
    return json_.empty() ? OkStatus() : WriteJson(Record(folder, models), json_);
  }

 private:
  static void Print(const std::string& folder, const std::vector<PulledModel>& models) {
    if (models.empty()) {
      fmt::print("no models in {} yet; `troupe pull hf.co/OWNER/REPO` gets one\n",
                 Printable(folder));
      return;
    }
    Bytes here;
    std::size_t width = 4;
    for (const PulledModel& model : models) {
      here += model.here;
      width = std::max(width, model.record.name.size());
    }
    fmt::print("{}, {} in {}\n\n", Counted(models.size(), "model"), ToString(here),
               Printable(folder));
    std::vector<std::string> beside;
    std::size_t beside_width = 6;
    for (const PulledModel& model : models) {
      beside_width = std::max(beside_width, beside.emplace_back(BesideText(model)).size());
    }
    const auto line = [&](auto&&... cells) {
      fmt::print("{:<{}}  {:>10}  {:<12}  {:<10}  {:<{}}  {}\n", cells...);
    };
    line("name", width, "size", "type", "got", "beside", beside_width, "state");
    for (std::size_t i = 0; i < models.size(); ++i) {
      const PulledModel& model = models[i];
      line(Printable(model.record.name), width, ToString(model.size()), Printable(model.type()),
           DayOf(model.got()), beside[i], beside_width, StateOf(model));
    }
  }

  // Sizes in bytes by endings.
  static Json BesideJson(const PulledModel& model) {
    Json beside = Json::Object();
    for (const FileBeside& file : FilesBeside(model)) beside[file.ending] = file.bytes.count();
    return beside;
  }

  static Json Record(const std::string& folder, const std::vector<PulledModel>& models) {
    Json list = Json::Array();
    for (const PulledModel& model : models) {
      list.push_back({{"name", model.record.name},
                      {"path", model.path()},
                      {"files", model.record.files.size()},
                      {"bytes", model.size().count()},
                      {"bytes_here", model.here.count()},
                      {"type", model.type()},
                      {"got", model.got()},
                      {"beside", BesideJson(model)},
                      {"complete", model.whole()}});
    }
    Json record = {{"folder", folder}};
    record["models"] = std::move(list);
    return record;
  }

  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }

}  // namespace troupe
