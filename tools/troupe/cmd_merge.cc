// `troupe merge`: the parts of a split model as one file.
#include <string>

#include "troupe/commands.h"
#include "troupe/options.h"
#include "troupe/write_parts.h"

namespace troupe {
namespace {

class MergeCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    AddModelOption(options, "IN", in_, "Any part of the model; the others lie beside it")
        .Required();
    AddOutputOption(options, "OUT", out_, "File to write").Required();
    AddJsonOption(options, json_);
  }

  Status Run() override { return WriteParts(in_, out_, Bytes(), json_); }

 private:
  std::string in_, out_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace troupe
