#include "runtime/prefix_file.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "text/vocab.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRPREFIX";
// Raised whenever a file would hold other bytes for the same tokens: by the format, and by every
// change of the arithmetic of keys and values.
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kBeginning = 0xFFFFFFFF;
constexpr std::uint32_t kMostRecords = 1 << 24;
// Made durable on the way, so that little is left for the end: that last step cannot be broken off.
constexpr std::uint64_t kSyncEach = 32 << 20;
constexpr std::uint64_t kMostUsed = std::uint64_t{1} << 62;

// Little-endian, like every machine that Troupe runs on.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t records;
  std::array<std::uint64_t, 2> model;
  std::uint32_t type;       // of the keys and values: a KvType
  std::uint32_t positions;  // of a page
  std::uint32_t first_layer, end_layer;
  std::uint64_t page_bytes;
  std::uint64_t state_bytes;  // 0: sequences have no state
  std::uint32_t states;
  std::uint32_t zero;
  std::uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(Header) == 80);

struct Record {  // followed by its tokens and its page
  std::uint32_t behind;
  std::uint32_t tokens;
  std::uint64_t used;
  std::uint64_t checksum;  // of what stands before it, tokens and page
};
static_assert(sizeof(Record) == 24);

struct StateRecord {  // followed by the tokens of the text up to there, and by the state
  std::uint64_t tokens;
  std::uint64_t checksum;  // of what stands before it, tokens and state
};
static_assert(sizeof(StateRecord) == 16);

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t ChecksumOf(const Header& header) {
  return XXH3_64bits(&header, offsetof(Header, checksum));
}

// Of a Record or a StateRecord.
template <typename AnyRecord>
std::uint64_t ChecksumOf(const AnyRecord& record, TokenIds tokens,
                         std::span<const std::byte> contents) {
  const std::uint64_t front = XXH3_64bits(&record, offsetof(AnyRecord, checksum));
  const std::uint64_t text = XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), front);
  return XXH3_64bits_withSeed(contents.data(), contents.size(), text);
}

Header HeaderFor(const ModelFingerprint& model, KvPool& pool, std::size_t records,
                 std::size_t states) {
  Header header{.magic = {},
                .version = kVersion,
                .records = static_cast<std::uint32_t>(records),
                .model = model.words,
                .type = static_cast<std::uint32_t>(pool.type()),
                .positions = static_cast<std::uint32_t>(pool.page_positions()),
                .first_layer = pool.layers().first,
                .end_layer = pool.layers().end,
                .page_bytes = pool.page_bytes(),
                .state_bytes = pool.states() == nullptr ? 0 : pool.states()->state_bytes(),
                .states = static_cast<std::uint32_t>(states),
                .zero = 0,
                .checksum = 0};
  std::ranges::copy(kMagic, header.magic.begin());
  header.checksum = ChecksumOf(header);
  return header;
}

// One file, whose records come one after the other.
class Reader {
 public:
  Reader(const ReadFile& file, const KeptTexts& kept, const MayGoOn& go_on)
      : file_(file), kept_(kept), pool_(kept.pool), go_on_(go_on) {}

  Status ReadHeader(const ModelFingerprint& model);
  // All records without their pages and states: what is found here is true of the file.
  Status ReadRecords();
  Result<PrefixFileReport> Fill();

 private:
  struct Place {
    Record record;
    std::vector<TokenId> tokens;
    std::uint64_t page_offset;
  };
  struct StatePlace {
    StateRecord record;
    std::vector<TokenId> tokens;
    std::uint64_t offset;
  };

  template <typename... Args>
  Status Damaged(std::uint64_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return DataLoss("{}, byte {}: {}", file_.path(), offset,
                    fmt::format(format, std::forward<Args>(args)...));
  }
  Status ReadStateRecords(std::uint64_t at);
  std::vector<bool> LatestThatFit(std::size_t pages) const;
  // Those used last, for which there are places.
  Result<std::vector<std::pair<const StatePlace*, SavedState>>> ReadStates() const;

  const ReadFile& file_;
  const KeptTexts& kept_;
  KvPool& pool_;
  const MayGoOn& go_on_;
  Header header_ = {};
  std::vector<Place> places_;
  std::vector<StatePlace> states_;  // what was used last comes last
};

Status Reader::ReadHeader(const ModelFingerprint& model) {
  if (file_.size() < sizeof header_) {
    return Damaged(0, "a file of {} bytes, a header of {} expected", file_.size(), sizeof header_);
  }
  TROUPE_RETURN_IF_ERROR(file_.ReadAt(0, std::as_writable_bytes(std::span(&header_, 1))));
  if (std::string_view(header_.magic.data(), header_.magic.size()) != kMagic) {
    return Error(Code::kAlreadyExists, "{}, byte 0: '{}' expected: it is no file of prefixes",
                 file_.path(), kMagic);
  }
  if (header_.version != kVersion) {
    return Error(Code::kFailedPrecondition, "{}: version {} of the format, {} expected",
                 file_.path(), header_.version, kVersion);
  }
  if (header_.checksum != ChecksumOf(header_)) {
    return Damaged(offsetof(Header, checksum), "the header's checksum is another one");
  }
  const Header expected = HeaderFor(model, pool_, header_.records, header_.states);
  if (header_.model != expected.model) {
    return Error(Code::kAlreadyExists, "{}: it is of another model", file_.path());
  }
  if (std::memcmp(&header_, &expected, sizeof header_) != 0) {
    return Error(Code::kFailedPrecondition,
                 "{}: its keys and values are stored otherwise than --kv-type and --ctx ask for",
                 file_.path());
  }
  if (std::max(header_.records, header_.states) > kMostRecords) {
    return Damaged(offsetof(Header, records), "{} pages and {} states, at most {} expected",
                   header_.records, header_.states, kMostRecords);
  }
  if (header_.states > 0 && header_.state_bytes == 0) {
    return Damaged(offsetof(Header, states), "{} states of no bytes", header_.states);
  }
  return OkStatus();
}

Status Reader::ReadRecords() {
  std::uint64_t at = sizeof header_;
  for (std::uint32_t i = 0; i < header_.records; ++i) {
    if (go_on_) TROUPE_RETURN_IF_ERROR(go_on_());
    Place place = {};
    if (file_.size() - at < sizeof place.record) return Damaged(at, "it ends within record {}", i);
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(at, std::as_writable_bytes(std::span(&place.record, 1))));
    const Record& record = place.record;
    if (record.tokens == 0 || record.tokens > header_.positions) {
      return Damaged(at, "{} tokens, 1 to {} expected", record.tokens, header_.positions);
    }
    if (record.used > kMostUsed) return Damaged(at, "used {} times, fewer expected", record.used);
    // Only full pages have others behind them.
    if (record.behind != kBeginning &&
        (record.behind >= i || places_[record.behind].tokens.size() < header_.positions ||
         places_[record.behind].record.used < record.used)) {
      return Damaged(at, "record {} stands behind {}", i, record.behind);
    }
    at += sizeof record;
    const std::uint64_t bytes = record.tokens * sizeof(TokenId);
    if (file_.size() - at < bytes || file_.size() - at - bytes < header_.page_bytes) {
      return Damaged(at, "it ends within record {}", i);
    }
    place.tokens.resize(record.tokens);
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(at, std::as_writable_bytes(std::span(place.tokens))));
    place.page_offset = at + bytes;
    at = place.page_offset + header_.page_bytes;
    places_.push_back(std::move(place));
  }
  return ReadStateRecords(at);
}

Status Reader::ReadStateRecords(std::uint64_t at) {
  for (std::uint32_t i = 0; i < header_.states; ++i) {
    if (go_on_) TROUPE_RETURN_IF_ERROR(go_on_());
    StatePlace place = {};
    if (file_.size() - at < sizeof place.record) return Damaged(at, "it ends within state {}", i);
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(at, std::as_writable_bytes(std::span(&place.record, 1))));
    at += sizeof place.record;
    const std::uint64_t most = (file_.size() - at) / sizeof(TokenId);
    if (place.record.tokens == 0 || place.record.tokens > most) {
      return Damaged(at, "a state after {} tokens, 1 to {} expected", place.record.tokens, most);
    }
    const std::uint64_t bytes = place.record.tokens * sizeof(TokenId);
    if (file_.size() - at - bytes < header_.state_bytes) {
      return Damaged(at, "it ends within state {}", i);
    }
    place.tokens.resize(place.record.tokens);
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(at, std::as_writable_bytes(std::span(place.tokens))));
    place.offset = at + bytes;
    at = place.offset + header_.state_bytes;
    states_.push_back(std::move(place));
  }
  if (at != file_.size()) return Damaged(at, "{} bytes behind the last record", file_.size() - at);
  return OkStatus();
}

// A page is never used later than the one it stands behind, so whoever is chosen has its beginning
// chosen, too.
std::vector<bool> Reader::LatestThatFit(std::size_t pages) const {
  std::vector<std::size_t> order(places_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return places_[i].record.used; });
  std::vector<bool> chosen(places_.size(), false);
  for (std::size_t i = 0; i < std::min(pages, order.size()); ++i) chosen[order[i]] = true;
  return chosen;
}

auto Reader::ReadStates() const -> Result<std::vector<std::pair<const StatePlace*, SavedState>>> {
  // What a sequence takes stays free for who checks what was read.
  constexpr std::size_t kOfSequence = 2;
  std::vector<std::pair<const StatePlace*, SavedState>> read;
  const std::size_t free = pool_.states() == nullptr ? 0 : pool_.states()->free_places();
  const std::size_t count = std::min(states_.size(), free - std::min(free, kOfSequence));
  for (const StatePlace& place : std::span(states_).last(count)) {
    if (go_on_) TROUPE_RETURN_IF_ERROR(go_on_());
    std::optional<SavedState> state = pool_.states()->NewSaved(place.tokens.size());
    TROUPE_CHECK(state.has_value());
    const std::span<std::byte> bytes = pool_.states()->BytesOf(*state);
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(place.offset, bytes));
    if (ChecksumOf(place.record, place.tokens, bytes) != place.record.checksum) {
      return Damaged(place.offset, "the checksum of the state after {} tokens is another one",
                     place.tokens.size());
    }
    read.emplace_back(&place, *std::move(state));
  }
  return read;
}

Result<PrefixFileReport> Reader::Fill() {
  // One stays free for who checks what was read.
  const std::size_t free = pool_.free_positions() / pool_.page_positions();
  const std::vector<bool> chosen = LatestThatFit(free - std::min<std::size_t>(free, 1));
  std::vector<KvPage> pages;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!chosen[i]) continue;
    if (go_on_) TROUPE_RETURN_IF_ERROR(go_on_());
    std::optional<KvPage> page = pool_.NewPage();
    TROUPE_CHECK(page.has_value());
    const Place& place = places_[i];
    TROUPE_RETURN_IF_ERROR(file_.ReadAt(place.page_offset, pool_.BytesOf(*page)));
    if (ChecksumOf(place.record, place.tokens, pool_.BytesOf(*page)) != place.record.checksum) {
      return Damaged(place.page_offset, "the checksum of record {} is another one", i);
    }
    pages.push_back(*std::move(page));
  }
  TROUPE_ASSIGN_OR_RETURN(auto states, ReadStates());
  // Nothing is put before all is known to be whole.
  PrefixCache::Filling filling(kept_.prefixes);
  std::vector<std::size_t> put_as(places_.size());
  std::size_t put = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!chosen[i]) continue;
    const Record& record = places_[i].record;
    filling.Put(record.behind == kBeginning ? PrefixCache::Kept::kNone : put_as[record.behind],
                places_[i].tokens, std::move(pages[put]), record.used);
    put_as[i] = put++;
  }
  // A state is of use only with all pages up to there.
  for (auto& [place, state] : states) {
    if (kept_.prefixes.KnownOf(place->tokens) < place->tokens.size()) continue;
    kept_.states.Keep(place->tokens, std::move(state));
  }
  return PrefixFileReport{.pages = put,
                          .left_out = places_.size() - put,
                          .states = kept_.states.size(),
                          .path = file_.path()};
}

}  // namespace

Status WritePrefixes(const std::string& path, const ModelFingerprint& model, const KeptTexts& kept,
                     const MayGoOn& go_on) {
  const std::vector<PrefixCache::Kept> all = kept.prefixes.All();
  const std::vector<KeptStates::Entry> states = kept.states.All();
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  TROUPE_RETURN_IF_ERROR(file.MakePrivate());
  TROUPE_RETURN_IF_ERROR(
      file.Append(BytesOf(HeaderFor(model, kept.pool, all.size(), states.size()))));
  std::uint64_t synced = 0;
  const auto append = [&](auto record, TokenIds tokens,
                          std::span<const std::byte> contents) -> Status {
    if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
    record.checksum = ChecksumOf(record, tokens, contents);
    TROUPE_RETURN_IF_ERROR(file.Append(BytesOf(record)));
    TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(tokens)));
    TROUPE_RETURN_IF_ERROR(file.Append(contents));
    if (file.size() - synced < kSyncEach) return OkStatus();
    synced = file.size();
    return file.SyncSoFar();
  };
  for (const PrefixCache::Kept& page : all) {
    const bool begins = page.behind == PrefixCache::Kept::kNone;
    const Record record{.behind = begins ? kBeginning : static_cast<std::uint32_t>(page.behind),
                        .tokens = static_cast<std::uint32_t>(page.tokens.size()),
                        .used = page.used,
                        .checksum = 0};
    TROUPE_RETURN_IF_ERROR(append(record, page.tokens, kept.pool.BytesOf(*page.page)));
  }
  for (const KeptStates::Entry& state : states) {
    const StateRecord record{.tokens = state.tokens.size(), .checksum = 0};
    TROUPE_RETURN_IF_ERROR(append(record, state.tokens, kept.pool.states()->BytesOf(*state.state)));
  }
  TROUPE_RETURN_IF_ERROR(file.Seal().status());
  if (go_on) TROUPE_RETURN_IF_ERROR(go_on());
  return file.Commit();
}

Result<PrefixFileReport> ReadPrefixes(const std::string& path, const ModelFingerprint& model,
                                      const KeptTexts& kept, const MayGoOn& go_on) {
  TROUPE_CHECK(kept.prefixes.pages() == 0 && kept.states.size() == 0);
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  Reader reader(file, kept, go_on);
  TROUPE_RETURN_IF_ERROR(reader.ReadHeader(model));
  TROUPE_RETURN_IF_ERROR(reader.ReadRecords());
  return reader.Fill();
}

}  // namespace troupe
