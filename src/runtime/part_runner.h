// Passes over some of a model's layers, for prompts that are cut between two of them, on an engine
// that answers whole requests as well. Keys and values of cut prompts lie in a pool beside the
// engine's: no request of the model waits for them. Who waits for which pass is part_lane.h's.
// Threads: the engine's, between two of its passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "model/kv_pool.h"
#include "model/layer_range.h"
#include "model/transformer.h"
#include "runtime/engine.h"
#include "runtime/part_keys.h"

namespace troupe {

// kInvalidArgument unless there are layers on both sides of it.
Status CheckCutLayer(const ModelConfig& config, std::uint32_t layer);
// The same, and kUnimplemented for models whose sequences have a state beside keys and values.
Status CheckPromptCut(const ModelConfig& config, std::uint32_t layer);

struct PartShape {
  LayerRange layers;          // that passes may run
  std::size_t positions = 0;  // of all cut prompts at a time

  bool operator==(const PartShape&) const = default;
};

class PartRunner {
 public:
  // For the memory plan, beside the engine, of a context of that many tokens.
  static Bytes BytesFor(const ModelConfig& config, const PartShape& shape, KvType type,
                        std::uint32_t context);
  // The engine must outlive its passes.
  static Result<PartRunner> Create(Engine& engine, const PartShape& shape);

  std::size_t most_rows() const { return engine_->plan().memory.chunk; }  // of a pass
  std::size_t width() const { return engine_->config().width; }
  std::size_t most_positions() const { return pool_->pages() * pool_->page_positions(); }
  std::size_t page_positions() const { return pool_->page_positions(); }  // by which room is given
  LayerRange layers() const { return pool_->layers(); }

  // A prompt that goes through some of the layers. The runner must outlive it.
  struct Sequence {
    KvSequence cache;
    RequestId request = 0;
  };
  // Room for a prompt of that many tokens; null: others hold it.
  std::unique_ptr<Sequence> Open(std::size_t tokens);
  void Close(std::unique_ptr<Sequence> sequence);

  // The next rows of a prompt: token ids, or of layers that do not begin with the first, as many
  // rows of the residual stream.
  struct Rows {
    Sequence* sequence = nullptr;
    TokenIds tokens = {};
    std::span<const float> stream = {};
  };
  // One pass, exactly. On an error every sequence is as it was. REQUIRES: the layers are within
  // those of the shape, and most_rows() holds.
  Status Run(LayerRange layers, std::span<const Rows> rows);
  const KvPool& pool() const { return *pool_; }
  // What the sequence has read, of some layers and whole tiles, in parts of `most_bytes` at most.
  std::vector<KeysPart> Keys(const Sequence& sequence, const KeysRange& range,
                             std::size_t most_bytes) const {
    return CopyKeys(*pool_, sequence.cache, range, most_bytes);
  }
  // What others have read for it. CheckKeys has accepted them.
  void Store(Sequence& sequence, const KeysRange& range, std::span<const std::byte> bytes) const {
    PutKeys(*pool_, range, bytes, sequence.cache);
  }
  // All layers of the first positions, for a sequence of the engine that has room for them and
  // fills whole pages with those before. REQUIRES: the shape has all layers, and all were computed
  // or stored.
  void CopyTo(Sequence& sequence, std::size_t positions, KvSequence& to) const {
    CopySequence(*pool_, sequence.cache, positions, engine_->kv(), to);
  }

  // Of the last Run, until the next: all rows behind its last layer, and of a run of the model's
  // last layer the logits after a row.
  std::span<const float> Stream() const;
  std::span<const float> Logits(std::uint32_t row);

 private:
  PartRunner(Engine& engine, std::unique_ptr<KvPool> pool)
      : engine_(&engine), pool_(std::move(pool)) {}
  Transformer& PartOf(LayerRange layers);

  Engine* engine_;
  std::unique_ptr<KvPool> pool_;
  std::map<std::uint32_t, Transformer> from_, up_to_;  // by first layer, and by the end of others
  Transformer* last_ = nullptr;                        // that ran
  std::vector<RowGroup> groups_;
  std::vector<float> logits_;
};

}  // namespace troupe
