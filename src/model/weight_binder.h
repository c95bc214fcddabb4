// Assigns every tensor that a configuration calls for, or those of some layers, its place in one
// buffer, and writes down what has to be read to fill it. Tensors of other layers are checked all
// the same. The reading itself is weight_loader.cc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/expert_layout.h"
#include "model/layer_range.h"
#include "model/weights.h"

namespace troupe {

// One matrix or vector to be read: `rows` rows of `cols` elements that lie one after the other in
// `tensor`, from byte `offset` of it.
struct LoadJob {
  enum class Form {
    kPanels,
    kFloats,     // converted to float, one row
    kColumns,    // converted to float, column after column
    kTransposed  // converted to F32 panels of the transposed matrix
  };
  const TensorInfo* tensor = nullptr;
  std::uint64_t offset = 0;
  std::size_t rows = 0;
  std::size_t cols = 0;
  Form form = Form::kPanels;
  float factor = 1;  // kFloats: what they are multiplied with
  std::byte* target = nullptr;
};

enum class RoutedExperts {
  kResident,  // in the buffer with everything else
  kElsewhere  // checked, but not placed
};

class WeightBinder {
 public:
  // Without a buffer it only counts: used_bytes() is then what a buffer must hold.
  WeightBinder(const GgufModel& file, const ModelConfig& config, LayerRange layers,
               RoutedExperts experts, std::span<std::byte> buffer = {});

  // The views; those of layers outside the range are empty, and so are the embedding and the output
  // of a range that lacks the first or the last layer. Fails on the first tensor of the whole model
  // that is missing, misshapen or left over.
  Result<ModelWeights> Bind();

  const std::vector<LoadJob>& jobs() const { return jobs_; }
  // How a layer's experts lie in a slot of their own, after Bind.
  const ExpertLayouts& expert_layouts() const { return expert_layouts_; }
  Bytes expert_bytes() const { return expert_bytes_; }
  Bytes used_bytes() const { return Bytes(used_); }

 private:
  struct Shape {
    std::uint64_t cols = 0, rows = 1, matrices = 1;
  };

  Result<const TensorInfo*> Require(const std::string& name, const Shape& shape);
  const TensorInfo* Find(const std::string& name);
  Status CheckShape(const TensorInfo& tensor, const Shape& shape) const;
  std::byte* Take(std::uint64_t bytes);

  // What a tensor beside this one says products with it are multiplied with, one number a matrix;
  // null: there is none.
  const float* FactorsOf(const TensorInfo& tensor);
  PanelMatrix Panels(const TensorInfo& tensor, std::uint64_t first_row, std::uint64_t rows);
  Result<PanelMatrix> Matrix(const std::string& name, std::uint64_t cols, std::uint64_t rows);
  Result<const float*> Vector(const std::string& name, std::uint64_t length, float factor = 1);
  // Column after column.
  Result<const float*> Columns(const std::string& name, std::uint64_t cols, std::uint64_t rows);
  // Rows of floats, one after the other.
  Result<const float*> Floats(const std::string& name, const Shape& shape);
  Result<const float*> OptionalVector(const std::string& name, std::uint64_t length);
  enum class Bias { kOptional, kRequired };
  Result<Linear> BindLinear(const std::string& prefix, std::uint64_t cols, std::uint64_t rows,
                            Bias bias = Bias::kOptional);
  Result<Mlp> BindMlp(const std::string& prefix, const std::string& suffix, std::uint64_t width,
                      std::uint64_t ff);

  // Checks without placing while `bind` runs, unless `wanted`.
  template <typename F>
  auto PlacingIf(bool wanted, F&& bind);
  Status BindEnds(ModelWeights& weights);
  // Of a head that guesses a further token: its layer, and what is its own of the ends.
  Result<ModelWeights> BindNextTokenHead();
  Result<LayerWeights> BindLayer(std::uint32_t layer);
  // What the names of the tensors of a part of a layer begin with.
  using LayerPart = std::optional<std::uint32_t> LayerBlocks::*;
  std::string PrefixOf(std::uint32_t layer, LayerPart part) const;
  // Of what takes attention's place, and of attention.
  Status BindMixers(std::uint32_t layer, LayerWeights& w);
  Status BindRecurrent(const std::string& prefix, LayerWeights& w);
  Result<AttentionWeights> BindAttention(std::uint32_t layer, const std::string& prefix);
  Status BindFusedHeads(const std::string& prefix, std::uint64_t q_rows, std::uint64_t k_rows,
                        std::uint64_t v_rows, AttentionWeights& w);
  Result<MlaWeights> BindMla(const std::string& prefix);
  Status BindLatentUps(const std::string& prefix, MlaWeights& mla);
  // weight_binder_encoder.cc
  Result<CrossWeights> BindCross(const std::string& prefix);
  Status BindEncoderEnds(ModelWeights& weights);
  Result<DeltaNetWeights> BindDeltaNet(const std::string& prefix);
  Result<StateSpaceWeights> BindStateSpace(const std::string& prefix);
  Result<ShortConvWeights> BindShortConv(const std::string& prefix);
  Status BindDeltaInputs(const std::string& prefix, DeltaNetWeights& w);
  Result<MoeWeights> BindMoe(std::uint32_t layer, const std::string& prefix);
  // Whether it belongs to a layer that guesses further tokens, which is left out.
  bool IsOfNextTokens(std::string_view name) const;
  Result<ExpertExtras> BindExpertExtras(const std::string& prefix);
  Status BindExpertMatrices(std::uint32_t layer, const std::string& prefix, MoeWeights& w);
  Result<BesideDenseNorms> BindBesideDenseNorms(const std::string& prefix);
  // The norm of a block's answer; null where the family has none.
  Result<const float*> AnswerNorm(const std::string& name);
  Status CheckNothingLeftOver() const;

  const GgufModel& file_;
  const ModelConfig& config_;
  LayerRange layers_;
  RoutedExperts experts_;
  std::span<std::byte> buffer_;
  bool placing_ = true;
  std::uint64_t used_ = 0;
  std::vector<LoadJob> jobs_;
  std::set<std::string, std::less<>> bound_;
  std::map<std::string, const float*, std::less<>> factors_;  // by the tensor's name
  Bytes expert_bytes_;
  ExpertLayouts expert_layouts_;  // one a layer
};

}  // namespace troupe
