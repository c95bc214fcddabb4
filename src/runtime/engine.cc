#include "runtime/engine.h"

#include "base/clock.h"
#include "gguf/reader.h"
#include "runtime/vocab_loader.h"

namespace troupe {

Engine::Engine(std::string path, ModelConfig config, EnginePlan plan, WeightStore weights,
               std::unique_ptr<Tokenizer> tokenizer, Result<ChatFormat> chat_format)
    : path_(std::move(path)),
      config_(std::move(config)),
      plan_(std::move(plan)),
      weights_(std::move(weights)),
      tokenizer_(std::move(tokenizer)),
      chat_format_(std::move(chat_format)),
      pool_(plan_.threads),
      transformer_(std::make_unique<Transformer>(config_, weights_.weights(), pool_)),
      bytes_touched_(BytesTouchedPerToken(weights_.weights(), config_.moe.routing.top_k)) {}

Result<std::unique_ptr<Engine>> Engine::Open(const std::string& path, const EngineOptions& options,
                                             const ByteProgress& progress) {
  const Stopwatch watch;
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(path));
  TROUPE_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(file.metadata()));
  TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadVocab(file.metadata(), path));
  Result<ChatFormat> chat_format = RecogniseChatFormat(vocab.chat_template);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(std::move(vocab)));
  TROUPE_ASSIGN_OR_RETURN(const Bytes weight_bytes, MeasureWeights(file, config));
  const auto cpus = static_cast<std::uint32_t>(ThreadPool::AvailableCpus());
  TROUPE_ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(config, weight_bytes, cpus, options));
  TROUPE_ASSIGN_OR_RETURN(WeightStore weights, [&] {
    ThreadPool loaders(plan.threads);
    return LoadWeights(file, config, loaders, progress);
  }());
  std::unique_ptr<Engine> engine(new Engine(path, std::move(config), std::move(plan),
                                            std::move(weights), std::move(tokenizer),
                                            std::move(chat_format)));
  engine->load_seconds_ = watch.Seconds();
  return engine;
}

}  // namespace troupe
