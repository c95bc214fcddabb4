// For tests: models of random weights that have a head whose guesses are right often. All layers
// answer weakly, so that what follows a token is mostly what its embedding alone says; and the head
// hands on the embedding of the token that it is given. With a strength of 0 every greedy guess is
// right, also those further ahead: the head's own row is the same embedding. A head whose output is
// of some tokens alone has these rows of the model's.
#pragma once

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "gguf/reader.h"

namespace troupe {

class F32Tensors {
 public:
  explicit F32Tensors(const std::string& path)
      : model_(GgufModel::Open(path).value()),
        file_(path, std::ios::in | std::ios::out | std::ios::binary) {}

  std::span<const TensorInfo> all() const { return model_.tensors(); }
  std::vector<float> Read(const TensorInfo& tensor) const {
    TROUPE_CHECK(tensor.type == TensorType::kF32);
    std::vector<float> values(tensor.ElementCount());
    TROUPE_CHECK(model_.ReadTensor(tensor, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }
  std::vector<float> Read(std::string_view name) const { return Read(*model_.Find(name)); }
  std::vector<float> RowsOf(std::string_view name, std::span<const std::int64_t> rows) const {
    const std::vector<float> all = Read(name);
    const std::size_t width = model_.Find(name)->dims[0];
    std::vector<float> some;
    for (const std::int64_t row : rows) {
      const auto first =
          all.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width);
      some.insert(some.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
    return some;
  }
  const Metadata& metadata() const { return model_.metadata(); }
  void Write(const TensorInfo& tensor, std::span<const float> values) {
    TROUPE_CHECK(values.size() == tensor.ElementCount());
    file_.seekp(static_cast<std::streamoff>(tensor.offset));
    file_.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size_bytes()));
    TROUPE_CHECK(file_.good());
  }

 private:
  GgufModel model_;
  std::fstream file_;
};

// Of the embedding and the row side by side, the embedding.
inline std::vector<float> FirstOfPair(std::size_t width) {
  std::vector<float> matrix(2 * width * width);
  for (std::size_t i = 0; i < width; ++i) matrix[i * 2 * width + i] = 1;
  return matrix;
}

// `shape`: of a family with such heads; with the vocabulary of the model `vocabulary`. `tokens`: as
// many have rows in an output of the head's own, if it is not 0.
inline void WriteAgreeingModel(const std::string& path, std::string_view shape, float strength,
                               const std::string& vocabulary, std::uint32_t tokens = 0) {
  SynthOptions options{.tokenizer = GgufModel::Open(vocabulary)->metadata()};
  options.layout.mix.type = TensorType::kF32;
  ModelShape made = *FindShape(shape);
  made.vocabulary = 4096;
  made.small_head.tokens = tokens;
  TROUPE_CHECK(Synthesize(made, options, path).ok());
  F32Tensors tensors(path);
  for (const TensorInfo& tensor : tensors.all()) {
    const std::string_view name = tensor.name;
    const auto is = [name](std::string_view end) { return name.ends_with(end); };
    if (is("nextn.eh_proj.weight")) {
      tensors.Write(tensor, FirstOfPair(made.width));
    } else if (is("nextn.shared_head_head.weight")) {
      const std::string key = fmt::format("{}.nextn_tokens", Name(made.architecture));
      tensors.Write(tensor, tensors.RowsOf("output.weight", *tensors.metadata().GetInts(key)));
    } else if (is("nextn.enorm.weight")) {
      tensors.Write(tensor, std::vector<float>(made.width, 1));
    } else if (is("nextn.shared_head_norm.weight")) {
      tensors.Write(tensor, tensors.Read("output_norm.weight"));
    } else if (is("attn_output.weight") || is("ssm_out.weight") || is("ffn_down.weight") ||
               is("ffn_down_exps.weight") || is("ffn_down_shexp.weight")) {
      std::vector<float> weak = tensors.Read(tensor);
      for (float& x : weak) x *= strength;
      tensors.Write(tensor, weak);
    }
  }
}

}  // namespace troupe
