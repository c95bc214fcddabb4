// A model that is ready to answer: file opened, plan made, weights in memory, tokenizer built. One
// engine serves any number of sessions (session.h), one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/config.h"
#include "model/transformer.h"
#include "model/weight_loader.h"
#include "model/weights.h"
#include "runtime/engine_plan.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace troupe {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Open(const std::string& path, const EngineOptions& options,
                                              const ByteProgress& progress = {});

  const std::string& path() const { return path_; }
  const ModelConfig& config() const { return config_; }
  const EnginePlan& plan() const { return plan_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The format that the model's chat template is in; the error says which it is not.
  Result<ChatFormat> chat_format() const { return chat_format_; }

  Transformer& transformer() { return *transformer_; }
  ThreadPool& pool() { return pool_; }
  const ModelWeights& weights() const { return weights_.weights(); }
  Bytes bytes_touched_per_token() const { return bytes_touched_; }
  double load_seconds() const { return load_seconds_; }

 private:
  Engine(std::string path, ModelConfig config, EnginePlan plan, WeightStore weights,
         std::unique_ptr<Tokenizer> tokenizer, Result<ChatFormat> chat_format);

  std::string path_;
  ModelConfig config_;
  EnginePlan plan_;
  WeightStore weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Result<ChatFormat> chat_format_;
  ThreadPool pool_;
  std::unique_ptr<Transformer> transformer_;
  Bytes bytes_touched_;
  double load_seconds_ = 0;
};

}  // namespace troupe
