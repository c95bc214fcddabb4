#include "store/parts_checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the state's size
#include <xxhash.h>

namespace troupe {

struct PartsChecksum::State {
  XXH3_state_t hash;
};

PartsChecksum::PartsChecksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->hash);
}
PartsChecksum::~PartsChecksum() = default;

void PartsChecksum::Add(std::span<const std::byte> part) {
  XXH3_64bits_update(&state_->hash, part.data(), part.size());
}

std::uint64_t PartsChecksum::value() const { return XXH3_64bits_digest(&state_->hash); }

}  // namespace troupe
