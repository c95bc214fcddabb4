// Says where experts lie on the slow tier, and turns the bytes there into the form of a cache slot.
// Two kinds: a GGUF read in place (gguf_store.h) and a packed container (container_store.h).
// expert_loader.h reads the bytes; model/ knows what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/expert_id.h"
#include "io/direct_file.h"

namespace troupe {

// A contiguous piece of an expert in a file. Offset and length are as the data lies: the loader
// widens them to what direct reads ask for.
struct Extent {
  std::uint32_t file = 0;  // index into files()
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  bool operator==(const Extent&) const = default;
};

// Compares an expert's bytes with what was recorded of them, as they come. One thread at a time.
class ArrivalCheck {
 public:
  virtual ~ArrivalCheck() = default;
  // The next bytes of a part; parts come in the order of Locate, each whole.
  virtual void Add(std::size_t part, std::span<const std::byte> bytes) = 0;
  // All were added. The error names the file and the place.
  virtual Status Finish() = 0;
};

class ExpertStore {
 public:
  virtual ~ExpertStore() = default;

  virtual std::string_view name() const = 0;  // "GGUF in place", "container"
  virtual std::span<const DirectFile> files() const = 0;

  // Appends the expert's extents, in the order in which Finish takes them.
  virtual void Locate(ExpertId id, std::vector<Extent>& extents) const = 0;

  // Whether the one extent starts and ends on kDirectAlignment and is, byte for byte, what a slot
  // holds, so that it is read straight into one. Otherwise extents are read into a staging buffer,
  // and Finish puts them together.
  virtual bool direct() const = 0;

  // XXH3-64 of what a slot with the expert holds; nothing where only reading it would tell.
  virtual std::optional<std::uint64_t> ChecksumOf(ExpertId) const { return std::nullopt; }

  // Of an expert whose bytes have to be compared before anybody uses them; null: they need not be.
  // It must not outlive the store. Called by several threads.
  virtual std::unique_ptr<ArrivalCheck> BeginCheck(ExpertId) { return nullptr; }

  // Makes the bytes that were read, and compared, into what the slot holds. `parts` are the
  // extents' bytes; if direct() they lie in the slot already. The error names the file and the
  // place. Called by one thread at a time for one slot; for different ones at once.
  virtual Status Finish(ExpertId id, std::span<const std::span<const std::byte>> parts,
                        std::span<std::byte> slot) = 0;

  // A file was written to: from now on each expert is compared with what was recorded of it, and
  // not only the first time. False: nothing was recorded, and nothing tells what the bytes are
  // now.
  virtual bool CompareEachTime() { return false; }

  // Experts whose bytes were what was recorded of them; each counts once.
  virtual std::uint64_t verified() const { return 0; }
};

}  // namespace troupe
