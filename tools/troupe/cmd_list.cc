// `troupe list`: the models that were got, and whether they are complete.
#include <fmt/core.h>

#include <algorithm>
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
    fmt::print("{:<{}}  {:>10}  {:<12}  {}\n", "name", width, "size", "type", "state");
    for (const PulledModel& model : models) {
      fmt::print("{:<{}}  {:>10}  {:<12}  {}\n", Printable(model.record.name), width,
                 ToString(model.size()), Printable(model.type()), StateOf(model));
    }
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
