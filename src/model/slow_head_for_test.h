// A head that guesses a further token, in plain loops and double precision, from the file's F32
// tensors by name: what model/next_token_head.h is compared with. Knows the layers of glm4moe,
// qwen35moe and qwen2moe, and nothing of the engine's but the configuration. Keys and values are
// rounded as a cache of F16 rounds them; nothing else is.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "gguf/reader.h"
#include "model/config.h"

namespace troupe {

using SlowRow = std::vector<double>;

class SlowHead {
 public:
  SlowHead(const GgufModel& file, const ModelConfig& model)
      : file_(file), config_(model), block_(fmt::format("blk.{}.", model.layers)) {}

  // The stream behind the head's layer.
  SlowRow Read(std::size_t token, const SlowRow& before) {
    SlowRow pair = Norm(Row(Tensor("token_embd.weight"), token), Of("nextn.enorm"));
    const SlowRow normed = Norm(before, Of("nextn.hnorm"));
    pair.insert(pair.end(), normed.begin(), normed.end());
    SlowRow x = Times(Of("nextn.eh_proj"), pair);
    Add(Attend(Norm(x, Of("attn_norm"))), x);
    Add(FeedForward(Norm(x, Of(std::string(config_.ffn_norm)))), x);
    return x;
  }
  // Of tokens that it never guesses minus infinity.
  SlowRow Logits(const SlowRow& stream) const {
    const SlowRow normed = Norm(stream, Of("nextn.shared_head_norm"));
    if (!Has("nextn.shared_head_head.weight")) return Times(Tensor("output.weight"), normed);
    const SlowRow said = Times(Of("nextn.shared_head_head"), normed);
    const std::string key = fmt::format("{}.nextn_tokens", Name(config_.architecture));
    const std::vector<std::int64_t> tokens = file_.metadata().GetInts(key).value();
    SlowRow logits(config_.vocabulary, -std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      logits[static_cast<std::size_t>(tokens[i])] = said[i];
    }
    return logits;
  }

 private:
  using Floats = std::vector<float>;

  Floats Tensor(const std::string& name) const {
    const TensorInfo* tensor = file_.Find(name);
    TROUPE_CHECK(tensor != nullptr && tensor->type == TensorType::kF32);
    Floats values(tensor->ElementCount());
    TROUPE_CHECK(file_.ReadTensor(*tensor, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }
  bool Has(const std::string& name) const { return file_.Find(block_ + name) != nullptr; }
  Floats Of(const std::string& name) const { return Tensor(block_ + name + ".weight"); }
  SlowRow Row(const Floats& matrix, std::size_t row) const {
    const auto first = matrix.begin() + static_cast<std::ptrdiff_t>(row * config_.width);
    return SlowRow(first, first + config_.width);
  }
  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static void Add(const SlowRow& more, SlowRow& to, double factor = 1) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * more[i];
  }
  static SlowRow Times(const Floats& matrix, const SlowRow& x, std::size_t first_row,
                       std::size_t rows) {
    SlowRow y(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      y[r] = std::inner_product(
          x.begin(), x.end(),
          matrix.begin() + static_cast<std::ptrdiff_t>((first_row + r) * x.size()), 0.0);
    }
    return y;
  }
  static SlowRow Times(const Floats& matrix, const SlowRow& x) {
    return Times(matrix, x, 0, matrix.size() / x.size());
  }
  SlowRow Norm(const SlowRow& x, const Floats& weight) const {
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    const double length = std::sqrt(squares / static_cast<double>(x.size()) + config_.norm_epsilon);
    SlowRow y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] / length * weight[i];
    return y;
  }
  SlowRow Project(const std::string& name, const SlowRow& x) const {
    SlowRow y = Times(Of(name), x);
    if (Has(name + ".bias")) {
      const Floats bias = Tensor(block_ + name + ".bias");
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i];
    }
    return y;
  }
  // Head `index` of a row, normalised and rotated to the next position.
  SlowRow Head(const SlowRow& row, std::size_t at, const std::string& norm) const {
    const std::size_t dim = config_.attention.key_dim, pairs = config_.rope.dims / 2;
    const auto first = row.begin() + static_cast<std::ptrdiff_t>(at);
    SlowRow head(first, first + static_cast<std::ptrdiff_t>(dim));
    if (Has(norm + ".weight")) head = Norm(head, Of(norm));
    for (std::size_t i = 0; i < pairs; ++i) {
      const double angle =
          static_cast<double>(keys_.size()) *
          std::pow(config_.rope.freq_base, -static_cast<double>(i) / static_cast<double>(pairs));
      const double a = head[i], b = head[i + pairs];
      head[i] = a * std::cos(angle) - b * std::sin(angle);
      head[i + pairs] = b * std::cos(angle) + a * std::sin(angle);
    }
    return head;
  }
  static SlowRow Rounded(SlowRow row) {
    for (double& x : row) x = HalfToFloat(FloatToHalf(static_cast<float>(x)));
    return row;
  }

  SlowRow Attend(const SlowRow& x) {
    const AttentionConfig& a = config_.attention;
    const std::size_t dim = a.key_dim, of_query = dim * (a.gated ? 2 : 1);
    const SlowRow q = Project("attn_q", x), k = Project("attn_k", x);
    SlowRow keys;
    for (std::size_t h = 0; h < a.kv_heads; ++h) {
      const SlowRow head = Head(k, h * dim, "attn_k_norm");
      keys.insert(keys.end(), head.begin(), head.end());
    }
    std::vector<SlowRow> queries;
    for (std::size_t h = 0; h < a.heads; ++h) {
      queries.push_back(Head(q, h * of_query, "attn_q_norm"));
    }
    keys_.push_back(Rounded(keys));
    values_.push_back(Rounded(Project("attn_v", x)));
    SlowRow attended;
    for (std::size_t h = 0; h < a.heads; ++h) {
      const SlowRow answer = AttendOne(queries[h], h * a.kv_heads / a.heads);
      for (std::size_t i = 0; i < dim; ++i) {
        attended.push_back(answer[i] * (a.gated ? Sigmoid(q[h * of_query + dim + i]) : 1));
      }
    }
    return Project("attn_output", attended);
  }
  SlowRow AttendOne(const SlowRow& query, std::size_t kv_head) const {
    const std::size_t dim = query.size();
    const auto at = static_cast<std::ptrdiff_t>(kv_head * dim);
    SlowRow shares;
    for (const SlowRow& key : keys_) {
      const double score = std::inner_product(query.begin(), query.end(), key.begin() + at, 0.0);
      shares.push_back(std::exp(score * config_.attention.scale));
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    SlowRow answer(dim);
    for (std::size_t p = 0; p < shares.size(); ++p) {
      for (std::size_t i = 0; i < dim; ++i) {
        answer[i] += shares[p] / sum * values_[p][kv_head * dim + i];
      }
    }
    return answer;
  }

  // Of expert `index` of a stack, or of a part that is alone.
  SlowRow Mlp(const SlowRow& x, const std::string& suffix, std::size_t ff,
              std::size_t index) const {
    const SlowRow gate = Times(Of("ffn_gate" + suffix), x, index * ff, ff);
    SlowRow hidden = Times(Of("ffn_up" + suffix), x, index * ff, ff);
    for (std::size_t i = 0; i < ff; ++i) hidden[i] *= gate[i] * Sigmoid(gate[i]);
    return Times(Of("ffn_down" + suffix), hidden, index * x.size(), x.size());
  }
  SlowRow FeedForward(const SlowRow& x) const {
    if (const TensorInfo* const dense = file_.Find(block_ + "ffn_gate.weight")) {
      return Mlp(x, "", dense->dims[1], 0);
    }
    const MoeConfig& moe = config_.moe;
    const TopExpertsParams& routing = moe.routing;
    SlowRow scores = Times(Of("ffn_gate_inp"), x);
    double sum = 0;
    for (double& score : scores) {
      score = routing.score == GateScore::kSigmoid ? Sigmoid(score) : std::exp(score);
      sum += score;
    }
    if (routing.score == GateScore::kSoftmax) {
      for (double& score : scores) score /= sum;
    }
    SlowRow ranks = scores;
    if (moe.selection_bias != Presence::kNone) {
      const Floats bias = Tensor(block_ + "exp_probs_b.bias");
      for (std::size_t e = 0; e < ranks.size(); ++e) ranks[e] += bias[e];
    }
    std::vector<std::size_t> best(scores.size());
    std::iota(best.begin(), best.end(), 0u);
    std::ranges::sort(best, std::greater(), [&](std::size_t e) { return ranks[e]; });
    best.resize(routing.top_k);
    double chosen = 0;
    for (const std::size_t e : best) chosen += scores[e];
    SlowRow y(x.size());
    for (const std::size_t e : best) {
      const double weight = routing.scale * scores[e] / (routing.normalise ? chosen : 1);
      Add(Mlp(x, "_exps", moe.expert_ff, e), y, weight);
    }
    const double share =
        moe.shared_gate ? Sigmoid(Times(Of("ffn_gate_inp_shexp"), x).front()) : 1.0;
    Add(Mlp(x, "_shexp", moe.shared_ff, 0), y, share);
    return y;
  }

  const GgufModel& file_;
  const ModelConfig& config_;
  std::string block_;
  std::vector<SlowRow> keys_, values_;  // by position
};

}  // namespace troupe
