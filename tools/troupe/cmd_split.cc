// `troupe split`: a model in several files, for disks and transfers that take no large ones.
#include <string>

#include "troupe/commands.h"
#include "troupe/options.h"
#include "troupe/write_parts.h"

namespace troupe {
namespace {

class SplitCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    AddModelOption(options, "IN", in_, "Model to read (any part of a split model)").Required();
    AddOutputOption(options, "OUT", out_, "Name of the parts: OUT-00001-of-00003.gguf").Required();
    options.Add("--size", size_, "Most bytes of tensors in a part (2GiB)")
        .Check(CheckSizeHasUnit)
        .Type("SIZE");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    return size_ > Bytes() ? OkStatus() : InvalidArgument("--size: more than 0 bytes expected");
  }

  Status Run() override { return WriteParts(in_, out_, size_, json_); }

 private:
  std::string in_, out_, json_;
  Bytes size_ = 2_GiB;
};

}  // namespace

std::unique_ptr<Command> MakeSplitCommand() { return std::make_unique<SplitCommand>(); }

}  // namespace troupe
