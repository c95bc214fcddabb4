// A head that guesses a further token (nextn, multi-token prediction): one layer that takes, for
// each token, its embedding beside the row of the stream that the model's layers have left of the
// token before it, and says what follows the token. The layer is one like the model's, with keys
// and values of its own; its experts are always in memory, or it has a dense block in their place.
// Its output may be of some tokens alone, the only ones that it guesses (docs/formats/head.md).
// Rows go on from one token to the next: in place of the model's row it may be given its own of the
// token before, to guess further ahead. What it says changes no answer; who asks it is
// runtime/head_draft.h. Threads: one at a time, with the pool to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/kv_pool.h"
#include "model/resident_experts.h"
#include "model/transformer.h"
#include "model/weight_checks.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace troupe {

// Whether the file has the head's tensors: some were written without them.
bool HasNextTokenHead(const GgufModel& file, const ModelConfig& config);

// The head as a model of two layers whose first is all of `config`'s model. REQUIRES:
// HasNextTokenHead.
ModelConfig NextTokenHeadOf(const GgufModel& file, const ModelConfig& config);

struct NextTokenShape {
  KvType kv_type = KvType::kF16;
  std::uint32_t context = 0;
  std::uint32_t sequences = 1;
  std::uint32_t threads = 1;
};

class NextTokenHead {
 public:
  static constexpr std::size_t kMostRows = 64;  // of a Forward

  // REQUIRES of all: HasNextTokenHead.
  static Result<Bytes> BytesFor(const GgufModel& file, const ModelConfig& model,
                                const NextTokenShape& shape);
  // `weights`: the model's, which must outlive it, as `pool` must.
  static Result<std::unique_ptr<NextTokenHead>> Open(const GgufModel& file,
                                                     const ModelConfig& model,
                                                     const ModelWeights& weights, ThreadPool& pool,
                                                     const NextTokenShape& shape,
                                                     const WeightChecks* checks = nullptr);
  NextTokenHead(const NextTokenHead&) = delete;
  NextTokenHead& operator=(const NextTokenHead&) = delete;

  // Without room; the head must outlive it.
  KvSequence NewSequence() { return kv_->NewSequence(); }

  // Appends tokens, kMostRows at most, each with the row of the token before it. The sequence has
  // room, and is as it was on an error.
  Status Forward(KvSequence& sequence, TokenIds tokens, std::span<const float> rows);
  // Of the last token of the last Forward: one number for each token of the vocabulary, minus
  // infinity for those that it never guesses.
  std::span<const float> Logits();
  std::span<const float> LastRow() const;  // its own, of the stream

 private:
  NextTokenHead(ModelConfig config, WeightStore store, const ModelWeights& model,
                std::vector<std::int32_t> tokens, ThreadPool& pool);
  void Join(TokenIds tokens, std::span<const float> rows);

  const ModelConfig config_;
  WeightStore store_;
  ModelWeights weights_;
  ThreadPool& pool_;
  ResidentExperts experts_;
  std::unique_ptr<KvPool> kv_;
  std::optional<Workspace> workspace_;
  Transformer transformer_;
  MatMulRegion region_;
  AlignedBuffer buffer_;  // of the two below
  Rows pairs_;            // embedding and row, both normed
  std::span<float> joined_;
  std::vector<float> logits_;
  std::vector<std::int32_t> tokens_;  // that the output has rows of; none: all
  std::vector<float> some_logits_;    // of these
};

}  // namespace troupe
