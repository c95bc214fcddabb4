// `troupe serve`: a model behind HTTP, until it is told to end.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "troupe/commands.h"
#include "troupe/node_opener.h"
#include "troupe/serve_flags.h"
#include "troupe/serve_run.h"

namespace troupe {
namespace {

class ServeCommand final : public Command {
 public:
  void AddOptions(Options& options) override { flags_.AddTo(options); }
  void SetArguments(std::vector<std::string> arguments) override {
    arguments_ = std::move(arguments);
  }
  Status CheckUsage() const override { return flags_.CheckUsage(); }
  // Reads the options once more, as it does at every SIGHUP: a file may say more of them.
  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const auto flags, ServeFlags::Read(arguments_));
    const bool is_node = flags->cluster().any();
    if (is_node && NodeOpener() == nullptr) return BecomeNodeProgram(arguments_);
    TROUPE_ASSIGN_OR_RETURN(const AccessRules access, flags->Access());
    if (const std::string remark = flags->RemarkOn(access); !remark.empty()) {
      LogWarning("{}", remark);
    }
    return ServeRun(std::move(arguments_)).Run();
  }

 private:
  ServeFlags flags_;
  std::vector<std::string> arguments_;
};

}  // namespace

std::unique_ptr<Command> MakeServeCommand() { return std::make_unique<ServeCommand>(); }

}  // namespace troupe
