// Any bytes as a file of score tables: read, or refused by one line. Whatever numbers are accepted,
// a run can begin with: each chance that follows from them is one, and what is learned on top of
// them are numbers again. As no fuzzer finds a checksum, each input is also tried behind a header
// that is right, with the checksum it needs.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "expert/cache/lru.h"
#include "expert/forecast/miss_chance.h"
#include "expert/forecast/score_map.h"
#include "expert/prefetch/miss_forecast.h"
#include "runtime/score_tables_file.h"
#include "store/running_checksum.h"

namespace troupe {
namespace {

constexpr ExpertGrid kFuzzedGrid{.layers = 3, .experts = 2};
constexpr std::uint32_t kFuzzedTopK = 1, kFuzzedFirst = 1;
constexpr std::size_t kTokensAt = 72, kChecksumAt = 80, kArraysAt = 88;

ScoreTablesOf FuzzedModel() {
  return {.fingerprint = std::string(32, 'f'),
          .grid = kFuzzedGrid,
          .experts_per_token = kFuzzedTopK,
          .layers = {1, 2}};
}

// A file without a name on a disk.
class TablesInMemory {
 public:
  explicit TablesInMemory(std::span<const std::byte> bytes)
      : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    TROUPE_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~TablesInMemory() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void CheckChances(const MissForecast& forecast) {
  for (const MissForecast::List& list : forecast.lists()) {
    for (const MissForecast::Predicted& predicted : list.experts) {
      TROUPE_CHECK(predicted.chance >= 0 && predicted.chance <= 1);
      TROUPE_CHECK(predicted.bin < ChanceHistogram::kBins);
    }
  }
}

// As a run does.
void BeginWith(ScoreTables tables) {
  constexpr std::uint32_t kTokens = 12;
  ExpertCache cache(CacheShape{.grid = kFuzzedGrid, .slots = 2, .quotas = {}},
                    std::make_unique<Lru>(kFuzzedGrid));
  const AheadLoads none(kFuzzedGrid);
  MissForecast forecast(cache, none, kFuzzedTopK, std::move(tables));
  std::vector<SaidOfExpert> said;
  Rng rng(18);
  for (std::uint32_t t = 0; t < kTokens; ++t) {
    forecast.OnPassBegins(OneGroup(kFuzzedFirst, Phase::kDecode, 1, t));
    for (std::uint32_t layer = kFuzzedFirst; layer < kFuzzedGrid.layers; ++layer) {
      const auto score = static_cast<float>(rng.Uniform());
      const float scores[] = {score, 1 - score};
      const ExpertId chosen{layer, score > 0.5f ? 0u : 1u};
      const ExpertDemand demand{.expert = chosen.expert, .tokens = 1};
      forecast.OnScores(layer, scores);
      forecast.OnLayerAsks(layer, {&demand, 1}, 0, said);
      const bool absent = cache.Ask(chosen, 1) == Residence::kAbsent;
      forecast.Predict(forecast.reach());
      if (layer + 1 < kFuzzedGrid.layers) {
        forecast.HearGate(layer + 1, 1, {.experts = kFuzzedGrid.experts, .scores = scores});
      }
      CheckChances(forecast);
      if (absent && cache.Admit(chosen)) cache.OnLoaded(chosen);
    }
  }
  const ScoreTables learned = std::move(forecast).Learned();
  for (const auto* numbers : {&learned.weights, &learned.moments, &learned.fits}) {
    TROUPE_CHECK(std::ranges::all_of(*numbers, [](float x) { return std::isfinite(x); }));
  }
  TROUPE_CHECK(std::ranges::all_of(learned.moments, [](float x) { return x > 0; }));
}

void ReadTables(std::span<const std::byte> bytes) {
  const TablesInMemory file(bytes);
  Result<ScoreTables> tables = LoadScoreTables(file.path(), FuzzedModel());
  if (!tables.ok()) {
    TROUPE_CHECK(tables.status().message().find('\n') == std::string::npos);
    return;
  }
  TROUPE_CHECK(tables->layers == FuzzedModel().layers);
  BeginWith(std::move(tables).value());
}

template <typename T>
void Put(const T& value, std::size_t at, std::vector<std::byte>& bytes) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Of the right size and with a header that is right but for the number of tokens; what the input
// lacks of the arrays are numbers that may be.
std::vector<std::byte> SealedTables(std::span<const std::byte> input) {
  const std::size_t floats =
      ScoreMap::WeightCount(kFuzzedGrid) + ScoreMap::MomentCount(kFuzzedGrid) +
      MissChance::NumberCount(ScoreMap::ReachFor(kFuzzedGrid)) + kFuzzedGrid.Count();
  const std::vector<std::uint32_t> layers = FuzzedModel().layers;
  const std::size_t floats_at = kArraysAt + layers.size() * sizeof layers[0];
  std::vector<std::byte> sealed(floats_at + floats * sizeof(float));
  std::copy_n("TRSCORES", 8, reinterpret_cast<char*>(sealed.data()));
  const std::uint32_t numbers[] = {1,
                                   kFuzzedGrid.layers,
                                   kFuzzedGrid.experts,
                                   kFuzzedTopK,
                                   static_cast<std::uint32_t>(layers.size()),
                                   ScoreMap::ReachFor(kFuzzedGrid),
                                   ScoreMap::RandomSums(),
                                   0};
  for (std::size_t i = 0; i < std::size(numbers); ++i) Put(numbers[i], 8 + 4 * i, sealed);
  std::fill_n(sealed.begin() + 40, 32, std::byte{'f'});
  for (std::size_t i = 0; i < layers.size(); ++i) Put(layers[i], kArraysAt + 4 * i, sealed);
  for (std::size_t i = 0; i < floats; ++i) Put(0.5f, floats_at + 4 * i, sealed);
  if (input.size() >= kChecksumAt) std::copy_n(input.data() + kTokensAt, 8, &sealed[kTokensAt]);
  if (input.size() > kArraysAt) {
    const std::size_t given = std::min(input.size(), sealed.size()) - kArraysAt;
    std::copy_n(input.data() + kArraysAt, given, &sealed[kArraysAt]);
  }
  RunningChecksum sum;
  sum.Add(std::span(sealed).first(kChecksumAt));
  sum.Add(std::span(sealed).subspan(kArraysAt));
  Put(sum.value(), kChecksumAt, sealed);
  return sealed;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  troupe::ReadTables(bytes);
  troupe::ReadTables(troupe::SealedTables(bytes));
  return 0;
}
