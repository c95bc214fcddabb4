// Opens and closes the models of one server, one after the other within one budget.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cluster/face/running_node.h"
#include "runtime/model_files.h"
#include "server/served_model.h"
#include "split/end_answers.h"
#include "store/model_fingerprint.h"
#include "troupe/serve_flags.h"

namespace troupe {

class ServeModels {
 public:
  // `go_on` is asked while a model and its prefixes are loaded; no: it is not opened, with
  // kCancelled. `fail` is told, on any thread, that the server cannot go on as what it was told to
  // be. `log_trouble` tells on any thread why the log of requests loses lines; empty: it does not.
  explicit ServeModels(std::function<bool()> go_on, std::function<void(const Status&)> fail = {},
                       std::function<std::string()> log_trouble = {});

  // Whether a model could be opened in place of the one that is open, as far as its file's header,
  // the plan and the date of a node's certificate can tell. Gives back what looking has taken: it
  // would be missing beside the model that is open.
  Status Check(const ServeFlags& flags) const;
  // While no other is open.
  Result<ServedModel> Open(const ServeFlags& flags);
  // Files that the model of now was opened with and that are others by now, or gone, or new.
  std::vector<std::string> ChangedFiles() const;
  // Nobody uses it any more. Remembers what it has told of the machine, keeps its prefixes while
  // `go_on` says yes, and gives its memory back.
  void Close(ServedModel& served, const std::function<bool()>& go_on = {});

 private:
  // Looks at this device, and keeps as many experts in memory as it may run, unless that was said.
  Result<DeviceWatch::Options> FitToDevice(const ServeFlags& flags, EngineFlags& engine) const;
  // Lets the answers of `served` be chosen in the cloud as well.
  Status OpenEnd(const ServeFlags& flags, const ModelProof& proof, DeviceWatch::Options device,
                 std::optional<MemoryWatchOptions> memory, ServedModel& served);

  // What the model of now was opened with, beside its options.
  struct Opened {
    std::string path;
    OffloadOptions offload;
    std::vector<ModelFile> files;  // as they were just before
    std::string prefix_file;
    std::optional<ModelFingerprint> fingerprint;  // of a node of a cluster
  };

  const std::function<bool()> go_on_;
  const std::function<void(const Status&)> fail_;
  const std::function<std::string()> log_trouble_;
  std::string prefixes_lost_;  // why those of the last model were not kept; empty: they were
  const Bytes at_start_;       // what the process held
  Bytes held_;                 // what the server has taken since then, without a model
  Opened opened_;
  std::unique_ptr<RunningNode> node_;  // of the model of now; null: it is of no cluster
  std::unique_ptr<EndAnswers> end_;    // the same; null: it has no cloud
};

// Of a body at most: what was said, or as long as a prompt that fits may be, each byte of it
// escaped, and what stands beside it.
std::size_t BodyBytes(const ServedModel& served, std::optional<Bytes> said);

}  // namespace troupe
