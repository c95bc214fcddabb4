// The door beside the front door, for the program `troupe` alone and not installed: a Model of an
// engine that was opened with options the public ones do not have, and a look at that engine.
#pragma once

#include <troupe/model.h>

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/prefix_file.h"

namespace troupe {

class ModelAccess {
 public:
  // Of the options only those of requests and passes count: the engine is open. kResourceExhausted:
  // the system gives no thread.
  static Result<std::unique_ptr<Model>> Of(std::unique_ptr<Engine> engine,
                                           const ModelOptions& options = {});

  // What requests have left in the prefix cache, from a file and into it (runtime/kept_prefixes.h):
  // before the first request, and after Close.
  static Result<PrefixFileReport> LoadPrefixes(Model& model, const std::string& path,
                                               const MayGoOn& go_on);
  static Status SavePrefixes(Model& model, const std::string& path, const MayGoOn& go_on);

  // The queue and the time of a pass, of these options, for the requests to come.
  static void SetLimits(Model& model, const ModelOptions& options);

  // Has the engine's thread do something short between two passes. Without effect once the model is
  // closed.
  static void Between(Model& model, std::function<void()> errand);

  // Runs passes on another thread while requests are under way: to be changed only while none is.
  static Engine& EngineOf(Model& model);
};

}  // namespace troupe
