#include "kernels/attention.h"

#include <limits>
#include <numeric>

#include "base/thread_pool.h"
#include "kernels/attention_reference.h"
#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct Shape {
  KvLayout layout;
  std::uint32_t heads;
  std::size_t window = 0;
  bool sinks = false;
};

// `positions` random keys and values, and queries for all of them. The pages lie in the reverse of
// their order, with one between them that belongs to nobody.
class Case {
 public:
  Case(Rng& rng, const Shape& shape, std::size_t positions, double deviation = 1.0)
      : shape_(shape) {
    shape_.layout.capacity =
        std::min(AlignUp(positions, KvLayout::kTile) + KvLayout::kTile, Attention::kBlock);
    const KvLayout& layout = shape_.layout;
    EXPECT_TRUE(layout.Check().ok());
    const std::size_t count = (positions + layout.capacity - 1) / layout.capacity;
    for (std::size_t i = count; i > 0; --i) pages_.push_back(static_cast<std::uint32_t>(2 * i - 1));
    // All bits set: whoever computes with a position that was never stored gets NaN.
    memory_.assign(2 * count * layout.TotalBytes().count(), std::byte{0xff});
    for (std::size_t head = 0; head < layout.kv_heads; ++head) {
      Store(StoreKeys, head, layout.k_dim, NormalFloats(rng, positions * layout.k_dim, deviation));
      if (layout.values_in_keys) continue;
      Store(StoreValues, head, layout.v_dim, NormalFloats(rng, positions * layout.v_dim));
    }
    q_ = NormalFloats(rng, positions * shape.heads * layout.k_dim, deviation);
    if (shape.sinks) sinks_ = NormalFloats(rng, shape.heads, 2 * deviation);
  }

  std::size_t QStride() const { return shape_.heads * shape_.layout.k_dim; }
  std::size_t OutStride() const { return shape_.heads * shape_.layout.v_dim; }
  const float* Query(std::size_t position, std::size_t head) const {
    return q_.data() + position * QStride() + head * shape_.layout.k_dim;
  }
  std::byte* Page(std::size_t i) {
    return memory_.data() + pages_[i] * shape_.layout.TotalBytes().count();
  }

  AttentionCall Call(std::size_t start, std::size_t tokens, float* out) const {
    return {.layout = shape_.layout,
            .kv = {.memory = memory_.data(),
                   .page_bytes = shape_.layout.TotalBytes().count(),
                   .pages = pages_},
            .heads = shape_.heads,
            .scale = 1.0f / std::sqrt(static_cast<float>(shape_.layout.k_dim)),
            .start = start,
            .tokens = tokens,
            .window = shape_.window,
            .sinks = sinks_.empty() ? nullptr : sinks_.data(),
            .q = q_.data() + start * QStride(),
            .q_stride = QStride(),
            .out = out,
            .out_stride = OutStride()};
  }

  // Attention of tokens [start, start + tokens), cut for `threads`; split only if `split`.
  std::vector<float> Run(std::size_t start, std::size_t tokens, std::size_t threads,
                         bool split) const {
    return Run(Call(start, tokens, nullptr), threads, split);
  }
  // Of a call with another output.
  std::vector<float> Run(AttentionCall call, std::size_t threads, bool split) const {
    std::vector<float> out(call.tokens * OutStride());
    call.out = out.data();
    std::vector<float> partials(
        split ? Attention::PartialFloats(shape_.layout, shape_.heads, call.tokens, call.Positions())
              : 0);
    const Attention attention(call, threads, partials);
    ThreadPool pool(threads);
    std::vector<std::vector<float>> scratch(
        threads, std::vector<float>(Attention::ScratchFloats(shape_.layout)));
    pool.Run(attention.tasks(),
             [&](std::size_t task, std::size_t thread) { attention.Run(task, scratch[thread]); });
    pool.Run(attention.merges(), [&](std::size_t m, std::size_t) { attention.Merge(m); });
    const std::size_t keys = call.keys > 0 ? call.keys : call.start + 1;
    const std::size_t first = FirstSeen(call, keys);
    if (split && threads > 1 &&
        call.Positions() > (first / Attention::kBlock + 1) * Attention::kBlock) {
      EXPECT_GT(attention.merges(), 0u) << "nothing was split: the test tests nothing";
    }
    return out;
  }

  std::vector<float> Reference(std::size_t position) const {
    std::vector<float> out;
    const AttentionCall call = Call(0, 1, nullptr);
    for (std::size_t head = 0; head < shape_.heads; ++head) {
      const auto row = AttendReference(call, Query(position, head), head, position + 1);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }

 private:
  template <typename Put>
  void Store(Put&& put, std::size_t head, std::size_t dim, const std::vector<float>& rows) {
    const std::size_t page = shape_.layout.capacity;
    for (std::size_t at = 0; at * dim < rows.size(); at += page) {
      const std::size_t count = std::min(page, rows.size() / dim - at);
      put(shape_.layout, Page(at / page), head, 0, count, rows.data() + at * dim, dim);
    }
  }

  Shape shape_;
  std::vector<std::uint32_t> pages_;
  std::vector<std::byte> memory_;
  std::vector<float> q_, sinks_;
};

std::vector<float> Slice(const std::vector<float>& v, std::size_t begin, std::size_t n) {
  return {v.begin() + static_cast<std::ptrdiff_t>(begin),
          v.begin() + static_cast<std::ptrdiff_t>(begin + n)};
}

std::vector<Shape> Shapes() {
  return {
      {{.kv_heads = 2, .k_dim = 16, .v_dim = 16}, 2},    // every head its own keys
      {{.kv_heads = 1, .k_dim = 64, .v_dim = 64}, 7},    // an odd group
      {{.kv_heads = 2, .k_dim = 128, .v_dim = 128}, 8},  // Qwen3's proportions
      {{.type = KvType::kQ8_0, .kv_heads = 2, .k_dim = 96, .v_dim = 64}, 4},
      {{.kv_heads = 1, .k_dim = 20, .v_dim = 36}, 3},    // no multiples of 16
      {{.kv_heads = 2, .k_dim = 192, .v_dim = 128}, 2},  // MLA, decompressed
      {{.kv_heads = 1, .k_dim = 80, .v_dim = 64, .values_in_keys = true}, 60},  // MLA, absorbed
      {{.type = KvType::kQ8_0, .kv_heads = 1, .k_dim = 160, .v_dim = 128, .values_in_keys = true},
       4},
      {{.kv_heads = 2, .k_dim = 64, .v_dim = 64}, 16, 128, true},  // gpt-oss's proportions
      {{.kv_heads = 1, .k_dim = 32, .v_dim = 32}, 4, 0, true},     // sinks alone
      {{.kv_heads = 2, .k_dim = 32, .v_dim = 48}, 2, 3},           // a window less than a tile
      {{.type = KvType::kQ8_0, .kv_heads = 1, .k_dim = 32, .v_dim = 32}, 1, 300},
  };
}

TEST(Attention, DecodeHasTheBitsOfItsReferenceAtEveryBlockEdgeOnEveryTarget) {
  Rng rng(TestSeed());
  for (const Shape& shape : Shapes()) {
    const Case c(rng, shape, 530);
    for (std::size_t position : {0, 1, 14, 15, 16, 63, 64, 100, 255, 256, 257, 511, 512, 529}) {
      const std::vector<std::uint32_t> expected = Bits(c.Reference(position));
      ForEachTarget([&] {
        ASSERT_EQ(Bits(c.Run(position, 1, 1, false)), expected)
            << "k_dim " << shape.layout.k_dim << ", position " << position;
      });
    }
  }
}

TEST(Attention, PrefillHasTheBitsOfDecodeHoweverItIsCutOnEveryTarget) {
  Rng rng(TestSeed());
  for (const Shape& shape : Shapes()) {
    constexpr std::size_t kPositions = 300;
    const Case c(rng, shape, kPositions);
    std::vector<float> expected;
    for (std::size_t p = 0; p < kPositions; ++p) {
      const std::vector<float> token = c.Run(p, 1, 1, false);
      expected.insert(expected.end(), token.begin(), token.end());
    }
    ForEachTarget([&] {
      for (std::size_t chunk : {300, 128, 53, 5}) {
        // The scalar target is slow, and its arithmetic does not depend on the chunk.
        if (ActiveTarget() == Target::kScalar && chunk != 128) continue;
        for (std::size_t start = 0; start < kPositions; start += chunk) {
          const std::size_t tokens = std::min(chunk, kPositions - start);
          ASSERT_EQ(Bits(c.Run(start, tokens, 1, false)),
                    Bits(Slice(expected, start * c.OutStride(), tokens * c.OutStride())))
              << "k_dim " << shape.layout.k_dim << ", from " << start << " by " << chunk;
        }
      }
    });
  }
}

TEST(Attention, SplittingTheKeysAmongThreadsChangesNoBit) {
  Rng rng(TestSeed());
  for (const Shape& shape : Shapes()) {
    const Case c(rng, shape, 1100);
    for (std::size_t tokens : {1, 3, 40}) {
      for (std::size_t start : {0, 255, 700, 1060}) {
        const std::vector<std::uint32_t> whole = Bits(c.Run(start, tokens, 1, false));
        for (std::size_t threads : {2, 3, 16}) {
          // So many tokens that there are tasks enough are not split.
          const bool split = tokens * shape.heads <= 3 * 48;
          ASSERT_EQ(Bits(c.Run(start, tokens, threads, split)), whole)
              << "k_dim " << shape.layout.k_dim << ", " << tokens << " tokens from " << start;
        }
      }
    }
  }
}

// u = 2^-24. With M the largest sum of |scale q k| of a key: a score errs by (k_dim + 1) u M, its
// distance to the largest by twice that and a rounding of at most 2 u M, so e^x by a factor of
// (2 k_dim + 4) u M and two u of its own; the factors of merged blocks likewise. Numerator and
// denominator both carry that, and their sums n u for the longest chain: 256 keys, the lanes, three
// operations a merge.
TEST(Attention, IsWithinTheRoundingOfItsOperationsOfTheTrueValue) {
  Rng rng(TestSeed());
  for (const Shape& shape : Shapes()) {
    for (double deviation : {1.0, 3.0}) {  // flat and peaked distributions
      const Case c(rng, shape, 700, deviation);
      const std::vector<float> out = c.Run(699, 1, 1, false);
      const AttentionCall call = c.Call(699, 1, nullptr);
      for (std::size_t head = 0; head < shape.heads; ++head) {
        const TrueAttention truth = AttendInDouble(call, c.Query(699, head), head, 700);
        const double chains = 256 + 20 + 3 * 3 + 4;
        const double scores = 2 * (2 * shape.layout.k_dim + 4) * truth.largest_score_magnitude;
        const double bound = 0x1p-24 * (2 * scores + chains);
        for (std::size_t i = 0; i < shape.layout.v_dim; ++i) {
          const auto got = static_cast<double>(out[head * shape.layout.v_dim + i]);
          ASSERT_LE(std::abs(got - truth.out[i]), bound * truth.magnitude[i])
              << "k_dim " << shape.layout.k_dim << ", head " << head << ", " << i;
        }
      }
    }
  }
}

TEST(Attention, NeverLooksAtALaterToken) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 1, .k_dim = 32, .v_dim = 32}, 1};
  Case c(rng, shape, 100);
  const std::vector<float> before = c.Run(0, 100, 1, false);
  KvLayout layout = c.Call(0, 1, nullptr).layout;
  const std::vector<float> nan(32, std::numeric_limits<float>::quiet_NaN());
  StoreKeys(layout, c.Page(0), 0, 70, 1, nan.data(), 32);
  StoreValues(layout, c.Page(0), 0, 70, 1, nan.data(), 32);
  ForEachTarget([&] {
    const std::vector<float> after = c.Run(0, 100, 1, false);
    EXPECT_EQ(Bits(Slice(after, 0, 70 * 32)), Bits(Slice(before, 0, 70 * 32)));
    EXPECT_TRUE(std::isnan(after[70 * 32])) << "the poison was not even seen by its own token";
  });
}

TEST(Attention, NeverLooksAtATokenBeforeItsWindow) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 1, .k_dim = 32, .v_dim = 32}, 1, 10};
  Case c(rng, shape, 100);
  const std::vector<float> before = c.Run(0, 100, 1, false);
  const KvLayout layout = c.Call(0, 1, nullptr).layout;
  const std::vector<float> nan(32, std::numeric_limits<float>::quiet_NaN());
  StoreKeys(layout, c.Page(0), 0, 70, 1, nan.data(), 32);
  StoreValues(layout, c.Page(0), 0, 70, 1, nan.data(), 32);
  ForEachTarget([&] {
    const std::vector<float> after = c.Run(0, 100, 1, false);
    EXPECT_EQ(Bits(Slice(after, 80 * 32, 20 * 32)), Bits(Slice(before, 80 * 32, 20 * 32)));
    EXPECT_TRUE(std::isnan(after[79 * 32])) << "the poison was not seen by the last that sees it";
    EXPECT_EQ(Bits(c.Run(80, 20, 1, false)), Bits(Slice(before, 80 * 32, 20 * 32)));
  });
}

// Random numbers for all distances less than `positions`.
class RandomBias {
 public:
  RandomBias(Rng& rng, std::uint32_t heads, std::size_t positions)
      : stride_(2 * positions - 1), numbers_(NormalFloats(rng, heads * stride_, 2.0)) {}

  PositionBias bias() const {
    return {.numbers = numbers_.data(), .stride = stride_, .zero = stride_ / 2};
  }

 private:
  std::size_t stride_;
  std::vector<float> numbers_;
};

// As an encoder sees its prompt, and a decoder its encoder's.
TEST(Attention, AllQueriesSeeTheSameKeysWhereTheirNumberIsGivenOnEveryTarget) {
  Rng rng(TestSeed());
  const Shape shapes[] = {{{.kv_heads = 4, .k_dim = 64, .v_dim = 64}, 4},
                          {{.type = KvType::kQ8_0, .kv_heads = 2, .k_dim = 32, .v_dim = 32}, 4}};
  for (const Shape& shape : shapes) {
    constexpr std::size_t kPositions = 530;
    const Case c(rng, shape, kPositions);
    const RandomBias bias(rng, shape.heads, kPositions);
    for (const std::size_t keys : {1, 16, 255, 256, 257, 530}) {
      for (const std::size_t position : {0, 17, 300, 529}) {
        AttentionCall call = c.Call(position, 1, nullptr);
        call.keys = keys;
        call.bias = bias.bias();
        std::vector<float> expected;
        for (std::size_t head = 0; head < shape.heads; ++head) {
          const auto row = AttendReference(call, c.Query(position, head), head, keys, position);
          expected.insert(expected.end(), row.begin(), row.end());
        }
        ForEachTarget([&] {
          ASSERT_EQ(Bits(c.Run(call, 1, false)), Bits(expected))
              << keys << " keys, position " << position;
        });
        ASSERT_EQ(Bits(c.Run(call, 4, true)), Bits(expected)) << keys << ", " << position;
      }
    }
  }
}

TEST(Attention, APromptOfAnEncoderHasTheBitsOfItsRowsHoweverItIsCut) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 3, .k_dim = 32, .v_dim = 32}, 3};
  constexpr std::size_t kPositions = 300;
  const Case c(rng, shape, kPositions);
  const RandomBias bias(rng, shape.heads, kPositions);
  const auto run = [&](std::size_t start, std::size_t tokens, std::size_t threads) {
    AttentionCall call = c.Call(start, tokens, nullptr);
    call.keys = kPositions;
    call.bias = bias.bias();
    return c.Run(call, threads, tokens < 8);
  };
  std::vector<float> expected;
  for (std::size_t p = 0; p < kPositions; ++p) {
    const std::vector<float> token = run(p, 1, 1);
    expected.insert(expected.end(), token.begin(), token.end());
  }
  for (const std::size_t threads : {1, 3}) {
    EXPECT_EQ(Bits(run(0, kPositions, threads)), Bits(expected));
    EXPECT_EQ(Bits(run(250, 7, threads)),
              Bits(Slice(expected, 250 * c.OutStride(), 7 * c.OutStride())));
  }
}

TEST(Attention, NoQuerySeesAKeyBeforeTheFirst) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 2, .k_dim = 32, .v_dim = 32}, 2};
  Case c(rng, shape, 600);
  const RandomBias bias(rng, shape.heads, 600);
  for (const std::size_t first : {5, 64, 255, 256, 300}) {
    const KvLayout layout = c.Call(0, 1, nullptr).layout;
    const std::vector<float> nan(32, std::numeric_limits<float>::quiet_NaN());
    StoreKeys(layout, c.Page((first - 1) / 256), 0, (first - 1) % 256, 1, nan.data(), 32);
    StoreValues(layout, c.Page((first - 1) / 256), 0, (first - 1) % 256, 1, nan.data(), 32);
    const auto call = [&](std::size_t start, std::size_t tokens) {
      AttentionCall wanted = c.Call(start, tokens, nullptr);
      wanted.first = first;
      wanted.bias = bias.bias();
      return wanted;
    };
    std::vector<float> expected;
    for (std::size_t p = first; p < 600; ++p) {
      for (std::size_t head = 0; head < shape.heads; ++head) {
        const auto row = AttendReference(call(p, 1), c.Query(p, head), head, p + 1);
        expected.insert(expected.end(), row.begin(), row.end());
      }
    }
    EXPECT_FALSE(std::isnan(std::accumulate(expected.begin(), expected.end(), 0.0f)));
    ForEachTarget([&] {
      ASSERT_EQ(Bits(c.Run(call(first, 600 - first), 1, false)), Bits(expected)) << first;
    });
    EXPECT_EQ(Bits(c.Run(call(599, 1), 4, true)),
              Bits(Slice(expected, (599 - first) * c.OutStride(), c.OutStride())));
    EXPECT_TRUE(std::isnan(c.Run(c.Call(599, 1, nullptr), 1, false).front()));
  }
}

// The bound of the test above, with one more operation a score.
TEST(Attention, WithABiasItIsWithinTheRoundingOfItsOperationsOfTheTrueValue) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 2, .k_dim = 64, .v_dim = 64}, 2};
  const Case c(rng, shape, 400);
  const RandomBias bias(rng, shape.heads, 400);
  AttentionCall call = c.Call(150, 1, nullptr);
  call.keys = 400;
  call.bias = bias.bias();
  const std::vector<float> out = c.Run(call, 1, false);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const TrueAttention truth = AttendInDouble(call, c.Query(150, head), head, 400, 150);
    const double scores = 2 * (2 * shape.layout.k_dim + 6) * truth.largest_score_magnitude;
    const double bound = 0x1p-24 * (2 * scores + 256 + 20 + 3 * 3 + 4);
    for (std::size_t i = 0; i < shape.layout.v_dim; ++i) {
      const auto got = static_cast<double>(out[head * shape.layout.v_dim + i]);
      ASSERT_LE(std::abs(got - truth.out[i]), bound * truth.magnitude[i]) << head << ", " << i;
    }
  }
}

TEST(Attention, AHighSinkTakesAllAndALowOneNothing) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 1, .k_dim = 32, .v_dim = 32}, 1};
  const Case c(rng, shape, 30);
  const std::vector<float> plain = c.Run(29, 1, 1, false);
  const auto with_sink = [&](float sink) {
    std::vector<float> out(32), scratch(Attention::ScratchFloats(shape.layout));
    AttentionCall call = c.Call(29, 1, out.data());
    call.sinks = &sink;
    const Attention attention(call, 1, {});
    attention.Run(0, scratch);
    return out;
  };
  EXPECT_EQ(Bits(with_sink(-1000)), Bits(plain));
  EXPECT_EQ(with_sink(1000), std::vector<float>(32, 0.0f));
  EXPECT_NE(Bits(with_sink(0)), Bits(plain));
}

TEST(Attention, TheFirstTokenGetsItsOwnValue) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 2, .k_dim = 64, .v_dim = 64}, 4};
  const Case c(rng, shape, 1);
  const std::vector<float> out = c.Run(0, 1, 1, false);
  const AttentionCall call = c.Call(0, 1, nullptr);
  for (std::size_t head = 0; head < 4; ++head) {
    EXPECT_EQ(Slice(out, head * 64, 64), LoadRow(call.layout, call.kv, head / 2, 0).value);
  }
}

TEST(Attention, WhereItsPagesLieChangesNoBit) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 2, .k_dim = 64, .v_dim = 64}, 4};
  const Case c(rng, shape, 700);
  AttentionCall call = c.Call(0, 700, nullptr);
  // The same pages in the order of their positions, without gaps.
  std::vector<std::byte> memory;
  std::vector<std::uint32_t> pages;
  for (std::size_t i = 0; i < call.kv.pages.size(); ++i) {
    memory.insert(memory.end(), call.kv.Page(i), call.kv.Page(i) + call.kv.page_bytes);
    pages.push_back(static_cast<std::uint32_t>(i));
  }
  std::vector<float> out(700 * c.OutStride());
  call.kv = {.memory = memory.data(), .page_bytes = call.kv.page_bytes, .pages = pages};
  call.out = out.data();
  std::vector<float> scratch(Attention::ScratchFloats(call.layout));
  const Attention attention(call, 1, {});
  for (std::size_t task = 0; task < attention.tasks(); ++task) attention.Run(task, scratch);
  EXPECT_EQ(Bits(out), Bits(c.Run(0, 700, 1, false)));
}

TEST(Attention, WritesNothingBesideItsOutput) {
  Rng rng(TestSeed());
  const Shape shape{{.kv_heads = 1, .k_dim = 16, .v_dim = 20}, 2};
  const Case c(rng, shape, 60);
  std::vector<float> out(60 * 50, 7.0f);
  AttentionCall call = c.Call(0, 60, out.data());
  call.out_stride = 50;  // 40 are written
  std::vector<float> scratch(Attention::ScratchFloats(call.layout));
  const Attention attention(call, 1, {});
  for (std::size_t task = 0; task < attention.tasks(); ++task) attention.Run(task, scratch);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % 50 < 40) continue;
    ASSERT_EQ(out[i], 7.0f) << i;
  }
}

}  // namespace
}  // namespace troupe
