#include "expert/cache/route_history.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little);

// Eight bytes, of which byte i is bit i.
constexpr auto kBytesOfBits = [] {
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t bits = 0; bits < 256; ++bits) {
    for (std::uint64_t i = 0; i < 8; ++i) table[bits] |= (bits >> i & 1) << (8 * i);
  }
  return table;
}();

// Divisible by most numbers of experts that a token uses. A layer adds as much at most, and with
// three eighths kept of a step's likeness, that of all is at most eight fifths of what all add.
constexpr std::int16_t kSameLayer = 120;

std::int16_t SameLayer(std::uint32_t layers) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int16_t>::max() / 8 * 5;
  return static_cast<std::int16_t>(std::min<std::uint32_t>(kSameLayer, kMost / layers));
}

}  // namespace

Bytes RouteHistory::BytesFor(ExpertGrid grid, std::uint32_t steps) {
  return Bytes(grid.Count() * (steps / 8) +
               steps * (sizeof(std::int16_t) + sizeof(std::uint8_t) + 1));
}

RouteHistory::RouteHistory(ExpertGrid grid, std::uint32_t steps)
    : grid_(grid),
      steps_(steps),
      words_(steps / kWordBits),
      same_layer_(SameLayer(grid.layers)),
      used_(grid.Count() * words_),
      likeness_(steps),
      shared_(steps),
      most_(steps / kBlock) {
  TROUPE_CHECK(std::has_single_bit(steps) && words_ >= 2);
}

void RouteHistory::BeginStep() {
  ++now_;
  for (std::int16_t& likeness : likeness_) {
    likeness = static_cast<std::int16_t>((likeness >> 2) + (likeness >> 3));
  }
  if (now_ % kWordBits != 0) return;
  // The present step opens a word, and with that forgets the oldest ones.
  const std::size_t word = Place(now_) / kWordBits;
  for (std::size_t row = 0; row < used_.size(); row += words_) used_[row + word] = 0;
}

void RouteHistory::Use(std::uint32_t layer, std::span<const std::uint32_t> experts,
                       std::size_t of) {
  const std::int16_t share =
      of == 0 ? std::int16_t{0} : static_cast<std::int16_t>(same_layer_ / static_cast<int>(of));
  if (share > 0) {
    CountShared(layer, experts);
    AddShared(share);
  }
  const std::uint32_t place = Place(now_);
  for (const std::uint32_t expert : experts) {
    Row({layer, expert})[place / kWordBits] |= std::uint64_t{1} << (place % kWordBits);
  }
}

// Adds up the experts' bits at all places at once: `planes_` has the ones, then the twos, ...
void RouteHistory::CountShared(std::uint32_t layer, std::span<const std::uint32_t> experts) {
  const auto digits = static_cast<std::size_t>(std::bit_width(experts.size()));
  planes_.assign((digits + 1) * words_, 0);
  std::uint64_t* const carry = &planes_[digits * words_];
  for (std::size_t i = 0; i < experts.size(); ++i) {
    std::copy_n(Row({layer, experts[i]}), words_, carry);
    for (std::size_t digit = 0; digit < static_cast<std::size_t>(std::bit_width(i + 1)); ++digit) {
      std::uint64_t* const sum = &planes_[digit * words_];
      for (std::size_t word = 0; word < words_; ++word) {
        const std::uint64_t carried = sum[word] & carry[word];
        sum[word] ^= carry[word];
        carry[word] = carried;
      }
    }
  }
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::size_t byte = 0; byte < kWordBits / 8; ++byte) {
      std::uint64_t counts = 0;
      for (std::size_t digit = 0; digit < digits; ++digit) {
        counts += kBytesOfBits[planes_[digit * words_ + word] >> (8 * byte) & 0xff] << digit;
      }
      std::memcpy(&shared_[word * kWordBits + byte * 8], &counts, sizeof(counts));
    }
  }
}

void RouteHistory::AddShared(std::int16_t share) {
  const auto add = [share](std::int16_t* likeness, const std::uint8_t* shared, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      likeness[i] = static_cast<std::int16_t>(likeness[i] + share * shared[i]);
    }
  };
  const std::uint32_t present = Place(now_);
  add(likeness_.data(), &shared_[present], steps_ - present);
  add(likeness_.data() + (steps_ - present), shared_.data(), present);
}

std::uint32_t RouteHistory::OldestLag() const {
  // A word less than the ring has: the oldest one was forgotten when the present one was opened.
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(now_ == 0 ? 0 : now_ - 1, steps_ - kWordBits));
}

// `count` blocks have a lag that is so like or liker, so at least as many lags are, and few more.
std::int16_t RouteHistory::LikenessOfMost(std::size_t count) {
  const std::size_t blocks = OldestLag() / kBlock + 1;
  for (std::size_t block = 0; block < blocks; ++block) {
    std::int16_t most = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      most = std::max(most, likeness_[block * kBlock + i]);
    }
    most_[block] = most;
  }
  if (blocks < count) return 0;
  std::vector<std::int16_t>& order = order_;
  order.assign(most_.begin(), most_.begin() + static_cast<std::ptrdiff_t>(blocks));
  const auto nth = order.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(order.begin(), nth, order.end(), std::greater());
  return *nth;
}

std::span<const RouteHistory::Match> RouteHistory::Closest(std::size_t count) {
  closest_.clear();
  const std::uint32_t oldest = OldestLag();
  if (oldest < 2 || count == 0) return closest_;
  // Lags 0 and 1 and those beyond the oldest do not count, but may be what made the first and the
  // last block seem like: two more blocks, so that enough remain.
  const std::int16_t least = LikenessOfMost(count + 2);
  for (std::uint32_t block = 0; block <= oldest / kBlock; ++block) {
    if (most_[block] < least) continue;
    const std::uint32_t end = std::min((block + 1) * kBlock, oldest + 1);
    for (std::uint32_t lag = std::max(2u, block * kBlock); lag < end; ++lag) {
      if (likeness_[lag] >= least) closest_.push_back({.lag = lag, .likeness = likeness_[lag]});
    }
  }
  if (closest_.size() > count) {
    const auto kept = closest_.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(closest_.begin(), kept, closest_.end(), [](const Match& a, const Match& b) {
      return a.likeness != b.likeness ? a.likeness > b.likeness : a.lag < b.lag;
    });
    closest_.erase(kept, closest_.end());
    std::ranges::sort(closest_, {}, &Match::lag);
  }
  return closest_;
}

std::uint32_t RouteHistory::StepsToUse(ExpertId id, std::uint32_t lag) const {
  const std::uint64_t* row = &used_[grid_.Index(id) * words_];
  const std::uint32_t place = Place(now_ - lag);
  const std::uint32_t word = place / kWordBits, bit = place % kWordBits;
  // The step's own bit comes first, those of later steps follow.
  std::uint64_t bits = row[word] << (kWordBits - 1 - bit);
  if (bit < kWordBits - 1) bits |= row[(word - 1) & (words_ - 1)] >> (bit + 1);
  const auto steps = static_cast<std::uint32_t>(std::countl_zero(bits));
  // Beyond the present step the ring holds the oldest ones.
  return steps < std::min(lag + 1, kAhead) ? steps : kNotSoon;
}

}  // namespace troupe
