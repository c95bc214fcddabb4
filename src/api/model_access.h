// The door beside the front door, for the program `troupe` alone and not installed: a Model of an
// engine that was opened with options the public ones do not have, and a look at that engine.
#pragma once

#include <troupe/model.h>

#include <memory>

#include "base/status.h"
#include "runtime/engine.h"

namespace troupe {

class ModelAccess {
 public:
  // Of the options only those of requests and passes count: the engine is open. kResourceExhausted:
  // the system gives no thread.
  static Result<std::unique_ptr<Model>> Of(std::unique_ptr<Engine> engine,
                                           const ModelOptions& options = {});

  // Runs passes on another thread while requests are under way: to be changed only while none is.
  static Engine& EngineOf(Model& model);
};

}  // namespace troupe
