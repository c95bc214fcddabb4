// What a codec of states takes on one thread, beside what it spares a link: rows of width 2,048, 64
// at once, as items a second; their bytes are those that cross. A code is a rank and the bits of a
// number (32: a float), and whether an entropy coder shortens them.
#include "split/codec/state_codec.h"

#include <benchmark/benchmark.h>

#include "split/codec/random_states_for_test.h"

namespace troupe {
namespace {

constexpr std::uint32_t kWidth = 2048;
constexpr std::size_t kRows = 64;

StateCode CodeOf(const benchmark::State& state) {
  const StateForm form = state.range(1) == 32  ? StateForm::kFloat
                         : state.range(1) == 8 ? StateForm::kInt8
                                               : StateForm::kInt4;
  return {.rank = static_cast<std::uint32_t>(state.range(0)),
          .form = form,
          .rans = state.range(2) == 1};
}

struct Case {
  explicit Case(const StateCode& code)
      : basis(RandomBasis(kWidth, code.rank, rng, {5, 900})),
        rows(RandomRows(kRows, *basis, rng)),
        encoder(StateEncoder::Create(basis, code).value()),
        decoder(StateDecoder::Create(basis, code).value()) {}

  Rng rng{1};
  std::shared_ptr<CutBasis> basis;
  std::vector<float> rows;
  StateEncoder encoder;
  StateDecoder decoder;
};

void Count(benchmark::State& state, const std::vector<std::byte>& message) {
  state.SetItemsProcessed(static_cast<std::int64_t>(kRows) * state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(message.size()) * state.iterations());
  state.counters["row_bytes"] = static_cast<double>(message.size() - kStateFrameBytes) / kRows;
}

void BM_Encode(benchmark::State& state) {
  Case c(CodeOf(state));
  std::vector<std::byte> message;
  for (auto _ : state) message = c.encoder.Encode(0, c.rows);
  Count(state, message);
}

void BM_Decode(benchmark::State& state) {
  Case c(CodeOf(state));
  const std::vector<std::byte> message = c.encoder.Encode(0, c.rows);
  for (auto _ : state) benchmark::DoNotOptimize(c.decoder.Decode(message)->rows.data());
  Count(state, message);
}

void Codes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rank", "bits", "rans"});
  for (const std::int64_t bits : {32, 8, 4}) bench->Args({0, bits, 0});
  for (const std::int64_t bits : {8, 4}) bench->Args({0, bits, 1});
  for (const std::int64_t rank : {256, 1024}) bench->Args({rank, 8, 0});
}
BENCHMARK(BM_Encode)->Apply(Codes);
BENCHMARK(BM_Decode)->Apply(Codes);

}  // namespace
}  // namespace troupe
