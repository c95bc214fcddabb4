#include "runtime/score_tables_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "expert/forecast/miss_chance.h"
#include "expert/forecast/score_map.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "model/config.h"
#include "runtime/container_path.h"
#include "store/running_checksum.h"

namespace troupe {
namespace {

constexpr std::string_view kScoresMagic = "TRSCORES";
// Raised whenever the same numbers would mean something else, too.
constexpr std::uint32_t kScoresVersion = 1;
// No model needs as much, a hostile header of a trace may.
constexpr Bytes kMostScoresBytes = 4_GiB;
constexpr std::uint64_t kMostTokensLearned = std::uint64_t{1} << 40;

// Little-endian, like every machine that Troupe runs on.
struct ScoresHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t layers;
  std::uint32_t experts;
  std::uint32_t experts_per_token;
  std::uint32_t layers_with_experts;
  std::uint32_t reach;
  std::uint32_t random_sums;
  std::uint32_t zero;
  std::array<char, 32> fingerprint;
  std::uint64_t tokens;
  std::uint64_t checksum;  // of the bytes before it, and of the file's behind it
};
static_assert(sizeof(ScoresHeader) == 88);

ScoresHeader ScoresHeaderFor(const ScoreTablesOf& of, std::uint64_t tokens) {
  ScoresHeader header{.magic = {},
                      .version = kScoresVersion,
                      .layers = of.grid.layers,
                      .experts = of.grid.experts,
                      .experts_per_token = of.experts_per_token,
                      .layers_with_experts = static_cast<std::uint32_t>(of.layers.size()),
                      .reach = ScoreMap::ReachFor(of.grid),
                      .random_sums = ScoreMap::RandomSums(),
                      .zero = 0,
                      .fingerprint = {},
                      .tokens = tokens,
                      .checksum = 0};
  std::ranges::copy(kScoresMagic, header.magic.begin());
  std::copy_n(of.fingerprint.begin(), std::min(of.fingerprint.size(), header.fingerprint.size()),
              header.fingerprint.begin());
  return header;
}

std::span<const std::byte> FrontOf(const ScoresHeader& header) {
  return std::as_bytes(std::span(&header, 1)).first(offsetof(ScoresHeader, checksum));
}

// What follows the header, in order.
template <typename Tables, typename Use>
Status ForEachArray(Tables& tables, Use use) {
  TROUPE_RETURN_IF_ERROR(use(std::span(tables.layers)));
  TROUPE_RETURN_IF_ERROR(use(std::span(tables.weights)));
  TROUPE_RETURN_IF_ERROR(use(std::span(tables.moments)));
  TROUPE_RETURN_IF_ERROR(use(std::span(tables.fits)));
  return use(std::span(tables.shares));
}

// Before anything of that size is taken.
std::uint64_t SizeOf(const ScoreTablesOf& of) {
  const std::size_t numbers =
      of.layers.size() + ScoreMap::WeightCount(of.grid) + ScoreMap::MomentCount(of.grid) +
      MissChance::NumberCount(ScoreMap::ReachFor(of.grid)) + of.grid.Count();
  static_assert(sizeof(float) == 4 && sizeof(std::uint32_t) == 4);
  return sizeof(ScoresHeader) + 4 * std::uint64_t{numbers};
}

Status CheckScoresHeader(const ReadFile& file, const ScoresHeader& header,
                         const ScoreTablesOf& of) {
  if (std::string_view(header.magic.data(), header.magic.size()) != kScoresMagic) {
    return DataLoss("{}, byte 0: '{}' expected: no score tables", file.path(), kScoresMagic);
  }
  if (header.version != kScoresVersion) {
    return Error(Code::kFailedPrecondition,
                 "{}: version {} of the format, {} expected; `troupe calibrate` makes it anew",
                 file.path(), header.version, kScoresVersion);
  }
  ScoresHeader expected = ScoresHeaderFor(of, header.tokens);
  if (of.fingerprint.empty()) expected.fingerprint = header.fingerprint;
  if (std::memcmp(&header, &expected, offsetof(ScoresHeader, checksum)) != 0) {
    return Error(Code::kAlreadyExists,
                 "{}: made for another model; `troupe calibrate` makes it anew", file.path());
  }
  if (SizeOf(of) > kMostScoresBytes.count()) {
    return Error(Code::kResourceExhausted, "{}: tables of {}, at most {} allowed", file.path(),
                 ToString(Bytes(SizeOf(of))), ToString(kMostScoresBytes));
  }
  if (file.size() != SizeOf(of)) {
    return DataLoss("{}: {} bytes, {} expected", file.path(), file.size(), SizeOf(of));
  }
  return OkStatus();
}

// MissChance keeps this many weights of each fit, then as many sums of squares, whose roots it
// takes.
constexpr std::size_t kFitTerms = 6;

bool AreFits(std::span<const float> fits) {
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const bool is_sum = i / kFitTerms % 2 == 1;
    if (!(std::abs(fits[i]) < 1e15f) || (is_sum && fits[i] <= 0)) return false;
  }
  return true;
}

// A run learns from them, and what is no number would spread, as what overflows would.
bool AreNumbers(const ScoreTables& tables) {
  const auto moderate = [](float x) { return std::abs(x) < 1e15f; };
  const auto positive = [](float x) { return std::isfinite(x) && x > 0; };
  const auto share = [](float x) { return x >= 0 && x <= 1; };
  return tables.tokens <= kMostTokensLearned && std::ranges::all_of(tables.weights, moderate) &&
         std::ranges::all_of(tables.moments, positive) && AreFits(tables.fits) &&
         std::ranges::all_of(tables.shares, share);
}

}  // namespace

ScoreTablesOf TablesOfModel(const ModelConfig& config, std::string fingerprint) {
  ScoreTablesOf of{.fingerprint = std::move(fingerprint),
                   .grid = {.layers = config.layers, .experts = config.moe.routing.experts},
                   .experts_per_token = config.moe.routing.top_k,
                   .layers = {}};
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.IsMoeLayer(layer)) of.layers.push_back(layer);
  }
  return of;
}

std::string ScoresPathFor(std::string_view model_path) { return PathBeside(model_path, ".scores"); }

Status SaveScoreTables(const ScoreTables& tables, const std::string& fingerprint,
                       const std::string& path) {
  const ScoreTablesOf of{.fingerprint = fingerprint,
                         .grid = tables.grid,
                         .experts_per_token = tables.experts_per_token,
                         .layers = tables.layers};
  ScoresHeader header = ScoresHeaderFor(of, tables.tokens);
  TROUPE_CHECK(fingerprint.size() == header.fingerprint.size());
  RunningChecksum sum;
  sum.Add(FrontOf(header));
  TROUPE_RETURN_IF_ERROR(ForEachArray(tables, [&](auto numbers) {
    sum.Add(std::as_bytes(numbers));
    return OkStatus();
  }));
  header.checksum = sum.value();
  TROUPE_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  TROUPE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(&header, 1))));
  TROUPE_RETURN_IF_ERROR(
      ForEachArray(tables, [&](auto numbers) { return file.Append(std::as_bytes(numbers)); }));
  return file.Commit();
}

Result<ScoreTables> LoadScoreTables(const std::string& path, const ScoreTablesOf& of) {
  TROUPE_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::Open(path));
  ScoresHeader header = {};
  if (file.size() < sizeof header) {
    return DataLoss("{}: a file of {} bytes, a header of {} expected", path, file.size(),
                    sizeof header);
  }
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&header, 1))));
  TROUPE_RETURN_IF_ERROR(CheckScoresHeader(file, header, of));
  ScoreTables tables{
      .grid = of.grid,
      .experts_per_token = of.experts_per_token,
      .layers = std::vector<std::uint32_t>(of.layers.size()),
      .tokens = header.tokens,
      .weights = std::vector<float>(ScoreMap::WeightCount(of.grid)),
      .moments = std::vector<float>(ScoreMap::MomentCount(of.grid)),
      .fits = std::vector<float>(MissChance::NumberCount(ScoreMap::ReachFor(of.grid))),
      .shares = std::vector<float>(of.grid.Count())};
  RunningChecksum sum;
  sum.Add(FrontOf(header));
  std::uint64_t at = sizeof header;
  const Status read = ForEachArray(tables, [&](auto numbers) -> Status {
    const std::span<std::byte> bytes = std::as_writable_bytes(numbers);
    TROUPE_RETURN_IF_ERROR(file.ReadAt(at, bytes));
    at += bytes.size();
    sum.Add(bytes);
    return OkStatus();
  });
  TROUPE_RETURN_IF_ERROR(read);
  if (sum.value() != header.checksum) {
    return DataLoss("{}: its bytes are not those that were written (checksum)", path);
  }
  if (tables.layers != of.layers || !AreNumbers(tables)) {
    return DataLoss("{}: numbers that no calibration leaves", path);
  }
  return tables;
}

}  // namespace troupe
