#include "store/model_fingerprint.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "gguf/encode.h"

namespace troupe {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::uint64_t kMatrixSampleBytes = 64;

class Hash {
 public:
  Hash() : state_(XXH3_createState(), XXH3_freeState) {
    TROUPE_CHECK(state_ != nullptr && XXH3_128bits_reset(state_.get()) == XXH_OK);
  }
  void Add(std::span<const std::byte> bytes) {
    TROUPE_CHECK(XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK);
  }
  ModelFingerprint Value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {{hash.high64, hash.low64}};
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

// Metadata and tensor table as one file without gaps would have them, whatever these ones look
// like.
Status AddHeader(const GgufModel& model, Hash& hash) {
  Metadata metadata = model.metadata();
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) metadata.Erase(key);
  const std::vector<TensorSpec> specs(model.tensors().begin(), model.tensors().end());
  const Result<EncodedHeader> header = EncodeHeader(metadata, specs);
  if (!header.ok()) return Status(header.status()).WithContext(model.path());
  hash.Add(header->bytes);
  return OkStatus();
}

// The beginning of each matrix of a tensor of several: somebody may have changed one expert alone.
Status AddEachExpert(const GgufModel& model, const TensorInfo& tensor, Hash& hash) {
  std::array<std::byte, kMatrixSampleBytes> sample;
  const std::uint64_t matrices = tensor.dims[2] * tensor.dims[3];
  const std::uint64_t bytes = tensor.bytes.count() / matrices;
  const auto part = std::span(sample).first(std::min(bytes, kMatrixSampleBytes));
  for (std::uint64_t m = 1; m < matrices; ++m) {  // the first is in the other sample
    TROUPE_RETURN_IF_ERROR(model.ReadRange(tensor, m * bytes, part));
    hash.Add(part);
  }
  return OkStatus();
}

Status AddSamples(const GgufModel& model, const TensorInfo& tensor, Hash& hash) {
  std::array<std::byte, kSampleBytes> sample;
  const std::uint64_t bytes = tensor.bytes.count();
  const std::uint64_t length = std::min(bytes, kSampleBytes);
  const std::uint64_t last = bytes - length;
  for (const std::uint64_t offset : {std::uint64_t{0}, last / 2, last}) {
    TROUPE_RETURN_IF_ERROR(model.ReadRange(tensor, offset, std::span(sample).first(length)));
    hash.Add(std::span(sample).first(length));
  }
  return AddEachExpert(model, tensor, hash);
}

}  // namespace

std::string ToString(const ModelFingerprint& fingerprint) {
  return fmt::format("{:016x}{:016x}", fingerprint.words[0], fingerprint.words[1]);
}

Result<ModelFingerprint> FingerprintModel(const GgufModel& model) {
  Hash hash;
  TROUPE_RETURN_IF_ERROR(AddHeader(model, hash));
  for (const TensorInfo& tensor : model.tensors()) {
    TROUPE_RETURN_IF_ERROR(AddSamples(model, tensor, hash));
  }
  return hash.Value();
}

}  // namespace troupe
