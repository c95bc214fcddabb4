#define XXH_STATIC_LINKING_ONLY  // the state's size

#include "store/running_checksum.h"

#include <xxhash.h>

namespace troupe {

struct RunningChecksum::State {
  XXH3_state_t hash;
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->hash);
}
RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::Add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::uint64_t RunningChecksum::value() const { return XXH3_64bits_digest(&state_->hash); }

}  // namespace troupe
