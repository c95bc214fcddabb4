// `troupe rm`: removes a model that was got, and what Troupe has written beside it.
#include <fmt/core.h>

#include <optional>
#include <string>

#include "base/printable.h"
#include "fetch/fetch_settings.h"
#include "fetch/model_folder.h"
#include "troupe/commands.h"
#include "troupe/options.h"

namespace troupe {
namespace {

class RmCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("NAME", name_, "Name of the model, as `troupe list` shows it")
        .Required()
        .NamesModels()
        .Type("NAME");
  }

  Status Run() override {
    const std::string folder = ModelFolder();
    TROUPE_ASSIGN_OR_RETURN(const std::optional<PulledModel> found, FindModel(folder, name_));
    if (!found) {
      return Error(Code::kNotFound, "there is no model '{}' in {} (troupe list)", name_, folder);
    }
    TROUPE_ASSIGN_OR_RETURN(const Removal removal, RemoveModel(folder, *found));
    fmt::print("removed {}: {} are free again\n", Printable(found->record.name),
               ToString(removal.freed));
    for (const std::string& path : removal.kept) {
      fmt::print("kept {}: another model needs it\n", Printable(path));
    }
    return OkStatus();
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> MakeRmCommand() { return std::make_unique<RmCommand>(); }

}  // namespace troupe
