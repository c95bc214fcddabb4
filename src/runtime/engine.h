// A model that is ready to answer: file opened, plan made, weights in memory or within reach,
// tokenizer built. One engine serves any number of sessions (session.h), one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/config.h"
#include "model/transformer.h"
#include "model/weight_loader.h"
#include "model/weights.h"
#include "runtime/engine_plan.h"
#include "runtime/model_profile.h"
#include "runtime/offloaded_experts.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace troupe {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Open(const std::string& path, const EngineOptions& options,
                                              const ByteProgress& progress = {});

  const std::string& path() const { return path_; }
  const ModelConfig& config() const { return *config_; }
  const EnginePlan& plan() const { return plan_; }
  const OffloadOptions& offload_options() const { return offload_options_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The format that the model's chat template is in; the error says which it is not.
  Result<ChatFormat> chat_format() const { return chat_format_; }

  Transformer& transformer() { return *transformer_; }
  ThreadPool& pool() { return pool_; }
  const ModelWeights& weights() const { return weights_.weights(); }
  ExpertUsage expert_usage() const { return experts_->usage(); }
  // Null if every expert is in memory.
  OffloadedExperts* offloaded() { return offloaded_; }
  const OffloadedExperts* offloaded() const { return offloaded_; }
  Bytes bytes_touched_per_token() const { return bytes_touched_; }
  double load_seconds() const { return load_seconds_; }

 private:
  struct Opened;
  explicit Engine(Opened opened);
  Status OpenExperts(const ExpertLayouts& layouts, std::unique_ptr<ExpertStore> store,
                     LowExperts low, SubstitutionChain substitution, const OffloadOptions& options,
                     std::optional<ModelProfile> profile);

  std::string path_;
  std::unique_ptr<const ModelConfig> config_;  // plan and weights point to it
  EnginePlan plan_;
  OffloadOptions offload_options_;
  WeightStore weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Result<ChatFormat> chat_format_;
  ThreadPool pool_;
  MonotonicClock clock_;
  std::unique_ptr<ExpertSource> experts_;
  OffloadedExperts* offloaded_ = nullptr;
  std::unique_ptr<Transformer> transformer_;
  Bytes bytes_touched_;
  double load_seconds_ = 0;
};

}  // namespace troupe
