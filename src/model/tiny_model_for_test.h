// A tiny model with random weights, and parts of it that can run: what tests of whole passes work
// on, without an engine.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/thread_pool.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "model/resident_experts.h"
#include "model/transformer.h"
#include "model/weight_loader.h"
#include "testing/temp_folder.h"

namespace troupe {

using LogitRow = std::vector<float>;

// The file of a shape of forge/synth_shape.h.
class TinyModel {
 public:
  explicit TinyModel(std::string_view shape, TensorType type = TensorType::kQ4_0)
      : file_(Write(shape, type, folder_.PathOf("m.gguf"))),
        config_(ReadModelConfig(file_.metadata()).value()) {}

  // Of a file that `write` makes at a path.
  explicit TinyModel(const std::function<void(const std::string&)>& write)
      : file_((write(folder_.PathOf("m.gguf")), GgufModel::Open(folder_.PathOf("m.gguf")).value())),
        config_(ReadModelConfig(file_.metadata()).value()) {}

  std::string path() const { return folder_.PathOf("m.gguf"); }
  const GgufModel& file() const { return file_; }
  const ModelConfig& config() const { return config_; }
  LayerRange AllLayers() const { return {0, config_.layers}; }
  std::vector<std::int32_t> Tokens(std::size_t count, Rng& rng) const {
    std::vector<std::int32_t> tokens(count);
    for (std::int32_t& token : tokens) {
      token = static_cast<std::int32_t>(rng.Below(config_.vocabulary));
    }
    return tokens;
  }

 private:
  static GgufModel Write(std::string_view shape, TensorType type, const std::string& path) {
    SynthOptions options;
    options.layout.mix.type = type;
    TROUPE_CHECK(Synthesize(*FindShape(shape), options, path).ok());
    return GgufModel::Open(path).value();
  }

  TempFolder folder_;
  GgufModel file_;
  ModelConfig config_;
};

struct ModelPartOptions {
  std::uint32_t context = 64;
  std::uint32_t sequences = 1;
  std::uint32_t chunk = 32;
  std::size_t threads = 2;
  std::uint32_t inputs = 0;  // rows of which a model with states keeps what they put into it
};

// Some layers of a model with all experts in memory, or all layers.
class ModelPart {
 public:
  ModelPart(const TinyModel& model, LayerRange layers, const ModelPartOptions& options = {})
      : config_(model.config()),
        threads_(options.threads),
        weights_(
            LoadWeights(model.file(), config_, layers, RoutedExperts::kResident, threads_).value()),
        experts_(weights_.weights()),
        kv_(KvPool::Create(config_, layers,
                           {.context = options.context,
                            .sequences = options.sequences,
                            .states = StatePoolShape{.sequences = options.sequences,
                                                     .inputs = options.inputs}})
                .value()),
        workspace_(Workspace::Create(config_,
                                     {.chunk = options.chunk,
                                      .threads = options.threads,
                                      .kv = kv_->layouts(),
                                      .context = options.context,
                                      .layers = layers},
                                     Rope())
                       .value()) {
    Use(experts_, layers);
  }

  // In place of the experts in memory.
  void Use(ExpertSource& experts) { Use(experts, transformer_->layers()); }

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_.weights(); }
  ThreadPool& threads() { return threads_; }
  KvPool& kv() { return *kv_; }
  Workspace& workspace() { return workspace_; }
  Transformer& transformer() { return *transformer_; }

  KvSequence NewSequence(std::size_t positions) {
    KvSequence sequence = kv_->NewSequence();
    TROUPE_CHECK(sequence.Reserve(positions).ok());
    return sequence;
  }
  Status Forward(Batch batch) { return transformer_->Forward(batch, workspace_); }
  Status Forward(const RowGroup& group) { return Forward(Batch(&group, 1)); }

  // Of `count` rows of the last pass from `first` on.
  std::vector<LogitRow> Logits(std::size_t first, std::size_t count) {
    std::vector<LogitRow> all;
    for (std::size_t i = first; i < first + count; ++i) {
      const auto row = static_cast<std::uint32_t>(i);
      transformer_->Logits(workspace_, {&row, 1}, all.emplace_back(config_.vocabulary).data());
    }
    return all;
  }
  // Of every token, fed alone to a new sequence.
  std::vector<LogitRow> LogitsOneByOne(std::span<const std::int32_t> tokens) {
    KvSequence sequence = NewSequence(tokens.size());
    std::vector<LogitRow> all;
    for (const std::int32_t& token : tokens) {
      TROUPE_CHECK(Forward({.cache = &sequence, .tokens = {&token, 1}}).ok());
      all.push_back(Logits(0, 1).front());
    }
    return all;
  }

 private:
  RopeParams Rope() const {
    RopeParams rope = config_.rope;
    rope.freq_factors = weights().rope_freq_factors;
    return rope;
  }
  void Use(ExpertSource& experts, LayerRange layers) {
    transformer_.emplace(config_, weights_.weights(), experts, threads_, layers);
  }

  const ModelConfig& config_;
  ThreadPool threads_;
  WeightStore weights_;
  ResidentExperts experts_;
  std::unique_ptr<KvPool> kv_;
  Workspace workspace_;
  std::optional<Transformer> transformer_;
};

}  // namespace troupe
