#include "forge/synth.h"

#include <utility>

#include "base/thread_pool.h"
#include "forge/model_output.h"
#include "forge/synth_tokenizer.h"
#include "forge/synth_weights.h"
#include "model/config.h"

namespace troupe {
namespace {

// What the layout relies on. Everything else the reader of configurations checks, below.
Status CheckShape(const ModelShape& shape) {
  const auto need = [&](std::string_view what, std::uint64_t value) {
    return value > 0 ? OkStatus()
                     : InvalidArgument("{}: {} is 0, at least 1 expected", shape.name, what);
  };
  TROUPE_RETURN_IF_ERROR(need("the number of layers", shape.layers));
  if (!shape.blocks.empty() && shape.layers > shape.blocks.size()) {
    return InvalidArgument("{}: the number of layers is {}, at most {} expected", shape.name,
                           shape.layers, shape.blocks.size());
  }
  TROUPE_RETURN_IF_ERROR(need("the width", shape.width));
  TROUPE_RETURN_IF_ERROR(need("the number of heads", shape.heads));
  TROUPE_RETURN_IF_ERROR(need("the number of key heads", shape.kv_heads));
  TROUPE_RETURN_IF_ERROR(need("the size of a head", shape.head_dim));
  TROUPE_RETURN_IF_ERROR(need("the vocabulary", shape.vocabulary));
  if (shape.small_head.tokens > shape.vocabulary) {
    return InvalidArgument(
        "{}: the head's output is of {} tokens, at most the {} there are expected", shape.name,
        shape.small_head.tokens, shape.vocabulary);
  }
  if (shape.mla) TROUPE_RETURN_IF_ERROR(need("the rank of keys", shape.mla->kv_rank));
  if (shape.mla) TROUPE_RETURN_IF_ERROR(need("the size of a value", shape.mla->value_dim));
  if (!shape.experts || shape.experts->leading_dense > 0) {
    TROUPE_RETURN_IF_ERROR(need("the width of a dense feed-forward", shape.dense_ff));
  }
  if (shape.experts) {
    TROUPE_RETURN_IF_ERROR(need("the number of experts", shape.experts->count));
    TROUPE_RETURN_IF_ERROR(need("the width of an expert", shape.experts->ff));
  }
  return OkStatus();
}

Result<Metadata> BuildMetadata(const ModelShape& shape, const SynthOptions& options) {
  Metadata metadata = MetadataOf(shape, options.layout);
  Status tokenizer = options.tokenizer
                         ? AddTokenizerOf(*options.tokenizer, shape.vocabulary, metadata)
                         : AddGeneratedTokenizer(shape.vocabulary, metadata);
  if (!tokenizer.ok()) return std::move(tokenizer).WithContext(shape.name);
  // A file that our own engine refuses must not be written.
  TROUPE_RETURN_IF_ERROR(ReadModelConfig(metadata).status());
  return metadata;
}

std::uint64_t WeightsOf(std::span<const TensorSpec> tensors) {
  std::uint64_t weights = 0;
  for (const TensorSpec& tensor : tensors) weights += tensor.ElementCount();
  return weights;
}

}  // namespace

Result<SynthReport> Synthesize(const ModelShape& shape, const SynthOptions& options,
                               const std::string& path) {
  TROUPE_RETURN_IF_ERROR(CheckShape(shape));
  TROUPE_ASSIGN_OR_RETURN(const Metadata metadata, BuildMetadata(shape, options));
  const std::vector<SynthTensor> tensors = TensorsOf(shape, options.layout);
  std::vector<TensorSpec> specs;
  for (const SynthTensor& tensor : tensors) specs.push_back(tensor.spec);
  TROUPE_ASSIGN_OR_RETURN(ModelOutput output,
                          ModelOutput::Create(path, metadata, specs, options.split_bytes));

  const bool from_pool = WeightsOf(specs) > kMostWeightsDrawn;
  ThreadPool threads(options.threads);
  WeightSource source(options.seed,
                      from_pool ? WeightSource::Method::kFromPool : WeightSource::Method::kDrawEach,
                      threads);
  const Bytes total = output.total_bytes();
  Bytes done;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(source.Generate(tensors[i], [&](std::span<const std::byte> bytes) {
      done += Bytes(bytes.size());
      if (Status told = Report(options.progress, done, total); !told.ok()) return told;
      return output.Append(i, bytes);
    }));
  }
  TROUPE_RETURN_IF_ERROR(output.Finish());
  return SynthReport{.files = output.files(), .bytes = total, .drawn_from_pool = from_pool};
}

}  // namespace troupe
