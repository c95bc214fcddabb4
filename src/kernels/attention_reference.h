// Attention by its definition, for tests: AttendReference is the scalar truth, operation by
// operation; AttendInDouble the mathematical value. One query row at a time; reads keys and
// values through LoadKey and LoadValue and shares no other code with the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/lanes_reference.h"
#include "quant/exp_reference.h"

namespace troupe {

struct CachedRow {
  std::vector<float> key, value;
};

inline CachedRow LoadRow(const KvLayout& layout, const PagedKv& kv, std::size_t kv_head,
                         std::size_t position) {
  CachedRow row{std::vector<float>(layout.k_dim), std::vector<float>(layout.v_dim)};
  const std::byte* const page = kv.Page(position / layout.capacity);
  const std::size_t place = position % layout.capacity;
  LoadKey(layout, page, kv_head, place, row.key.data());
  if (layout.values_in_keys) {
    std::copy_n(row.key.begin(), layout.v_dim, row.value.begin());
  } else {
    LoadValue(layout, page, kv_head, place, row.value.data());
  }
  return row;
}

// The first position that a query sees whose last one is keys - 1.
inline std::size_t FirstSeen(const AttentionCall& call, std::size_t keys) {
  return std::max(call.first, call.window == 0 ? 0 : keys - std::min(keys, call.window));
}

// What is added to a score.
inline float BiasOf(const AttentionCall& call, std::size_t head, std::size_t query,
                    std::size_t key) {
  return call.bias.numbers == nullptr ? 0.0f : *call.bias.Of(head, query, key);
}

// `keys` is how many positions there are up to the last that the query sees: its own, unless that
// is named.
inline std::vector<float> AttendReference(const AttentionCall& call, const float* q,
                                          std::size_t head, std::size_t keys,
                                          std::optional<std::size_t> query = std::nullopt) {
  const std::size_t position = query.value_or(keys - 1);
  const KvLayout& layout = call.layout;
  const std::size_t kv_head = head / (call.heads / layout.kv_heads);
  const std::size_t first = FirstSeen(call, keys);
  float total_largest = 0, total_sum = 0;
  std::vector<float> total_out;
  for (std::size_t block = first / 256 * 256; block < keys; block += 256) {
    const std::size_t begin = std::max(block, first);
    const std::size_t n = std::min<std::size_t>(block + 256, keys) - begin;
    std::vector<float> scores(n);
    std::vector<CachedRow> rows;
    for (std::size_t j = 0; j < n; ++j) {
      rows.push_back(LoadRow(layout, call.kv, kv_head, begin + j));
      for (std::size_t i = 0; i < layout.k_dim; ++i) {
        scores[j] = std::fma(q[i] * call.scale, rows[j].key[i], scores[j]);
      }
      if (call.bias.numbers != nullptr) scores[j] += BiasOf(call, head, position, begin + j);
    }
    const float largest = *std::max_element(scores.begin(), scores.end());
    SixteenLanes lanes;
    std::vector<float> out(layout.v_dim);
    for (std::size_t j = 0; j < n; ++j) {
      const float p = ExpReference(scores[j] - largest);
      lanes.Add(begin - block + j, p);
      for (std::size_t i = 0; i < layout.v_dim; ++i) out[i] = std::fma(p, rows[j].value[i], out[i]);
    }
    if (begin == first) {
      total_largest = largest;
      total_sum = lanes.Sum();
      total_out = out;
      continue;
    }
    const float new_largest = std::max(total_largest, largest);
    const float old_factor = ExpReference(total_largest - new_largest);
    const float new_factor = ExpReference(largest - new_largest);
    total_largest = new_largest;
    total_sum = std::fma(lanes.Sum(), new_factor, total_sum * old_factor);
    for (std::size_t i = 0; i < layout.v_dim; ++i) {
      total_out[i] = std::fma(out[i], new_factor, total_out[i] * old_factor);
    }
  }
  if (call.sinks != nullptr) {
    const float largest = std::max(total_largest, call.sinks[head]);
    const float factor = ExpReference(total_largest - largest);
    total_sum = std::fma(total_sum, factor, ExpReference(call.sinks[head] - largest));
    for (float& v : total_out) v *= factor;
  }
  const float reciprocal = 1.0f / total_sum;
  for (float& v : total_out) v *= reciprocal;
  return total_out;
}

struct TrueAttention {
  std::vector<double> out;
  std::vector<double> magnitude;       // per output, the same sum over |value|
  double largest_score_magnitude = 0;  // the largest sum of |q k scale| over keys
};

inline TrueAttention AttendInDouble(const AttentionCall& call, const float* q, std::size_t head,
                                    std::size_t keys,
                                    std::optional<std::size_t> query = std::nullopt) {
  const KvLayout& layout = call.layout;
  const std::size_t kv_head = head / (call.heads / layout.kv_heads);
  const std::size_t first = FirstSeen(call, keys);
  TrueAttention truth{std::vector<double>(layout.v_dim), std::vector<double>(layout.v_dim)};
  std::vector<CachedRow> rows;
  std::vector<double> scores(keys - first);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    rows.push_back(LoadRow(layout, call.kv, kv_head, first + j));
    double magnitude = 0;
    for (std::size_t i = 0; i < layout.k_dim; ++i) {
      const double product = static_cast<double>(q[i]) * static_cast<double>(call.scale) *
                             static_cast<double>(rows[j].key[i]);
      scores[j] += product;
      magnitude += std::abs(product);
    }
    const auto bias = static_cast<double>(BiasOf(call, head, query.value_or(keys - 1), first + j));
    scores[j] += bias;
    magnitude += std::abs(bias);
    truth.largest_score_magnitude = std::max(truth.largest_score_magnitude, magnitude);
  }
  double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  if (call.sinks != nullptr) {
    const double sink = static_cast<double>(call.sinks[head]);
    largest = std::max(largest, sink);
    sum = std::exp(sink - largest);
  }
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    for (std::size_t i = 0; i < layout.v_dim; ++i) {
      const double part = scores[j] / sum * static_cast<double>(rows[j].value[i]);
      truth.out[i] += part;
      truth.magnitude[i] += std::abs(part);
    }
  }
  return truth;
}

}  // namespace troupe
