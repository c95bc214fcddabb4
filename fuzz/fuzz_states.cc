// Any bytes as states that cross a cut, of which the first says what is expected: rows of finite
// numbers (any, where the code is exact, and then the same bytes again), or one line. As no fuzzer
// finds a digest, each input is also tried with that of the basis here. Or as a file of cuts, which
// is the same when it is written and read again. Or, behind a byte that no code has, as a stream of
// an entropy coder.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "split/codec/cut_file.h"
#include "split/codec/rans.h"
#include "split/codec/state_codec.h"

namespace troupe {
namespace {

constexpr std::uint32_t kWidth = 6;

std::shared_ptr<const CutBasis> FuzzedBasis() {
  auto basis = std::make_shared<CutBasis>();
  *basis = {.layer = 1, .width = kWidth, .kept = {2}, .mean = {}, .finders = {}, .directions = {}};
  basis->mean = {0.5f, 0, 0, -0.25f, 0, 0};
  basis->finders = basis->directions = {1, 0, 0, 0, 0, 0, 0, 0.6f, 0, 0.8f, 0, 0, 0, 0, 0, 0, 1, 0};
  TROUPE_CHECK(CheckBasis(*basis).ok());
  return basis;
}

const std::shared_ptr<const CutBasis>& Basis() {
  static const std::shared_ptr<const CutBasis> basis = FuzzedBasis();
  return basis;
}

StateCode CodeOf(std::uint8_t expected) {
  StateCode code{.rank = expected % 4u, .form = static_cast<StateForm>(expected / 4 % 3)};
  code.rans = code.form != StateForm::kFloat && expected / 12 % 2 == 1;
  return code;
}

std::vector<std::byte> WithDigest(std::uint8_t expected, std::span<const std::byte> message) {
  constexpr std::size_t kDigestAt = 32;
  std::vector<std::byte> sealed(message.begin(), message.end());
  const std::uint64_t digest = DigestOf(*Basis(), CodeOf(expected));
  if (sealed.size() >= kStateFrameBytes) {
    std::memcpy(sealed.data() + kDigestAt, &digest, sizeof digest);
  }
  return sealed;
}

void Decode(std::uint8_t expected, std::span<const std::byte> message) {
  const std::shared_ptr<const CutBasis>& basis = Basis();
  const StateCode code = CodeOf(expected);
  StateDecoder decoder = StateDecoder::Create(basis, code).value();
  const auto states = decoder.Decode(message);
  TROUPE_CHECK(states.status().message().find('\n') == std::string::npos);
  if (!states.ok()) return;
  TROUPE_CHECK(states->rows.size() % kWidth == 0 && !states->rows.empty());
  StateEncoder encoder = StateEncoder::Create(basis, code).value();
  const std::vector<std::byte> again = encoder.Encode(states->first, states->rows);
  // An entropy coder's bytes are no longer than those without it, and as many as they are.
  const std::size_t plain = kStateFrameBytes + states->rows.size() / kWidth * encoder.row_bytes();
  TROUPE_CHECK(message.size() <= plain && again.size() <= plain);
  TROUPE_CHECK(code.rans || again.size() == message.size());
  if (code.exact()) {
    TROUPE_CHECK(std::ranges::equal(again, message));
  } else {
    for (const float x : states->rows) TROUPE_CHECK(std::isfinite(x));
  }
}

void ReadStream(std::span<const std::byte> in) {
  constexpr std::size_t kFuzzedSymbols = 40;
  std::vector<std::uint8_t> symbols(kFuzzedSymbols), again(kFuzzedSymbols);
  if (!TakeStream(in, symbols).ok()) return;
  std::vector<std::byte> stream;
  AppendStream(symbols, stream);
  std::span<const std::byte> written = stream;
  TROUPE_CHECK(TakeStream(written, again).ok() && written.empty() && again == symbols);
}

void ReadFile(std::string_view text) {
  const Result<CutFile> file = DecodeCutFile("m.cuts.json", text);
  TROUPE_CHECK(file.status().message().find('\n') == std::string::npos);
  if (!file.ok()) return;
  for (const PricedCut& cut : file->cuts) TROUPE_CHECK(CheckBasis(cut.basis).ok());
  TROUPE_CHECK(DecodeCutFile("m.cuts.json", EncodeCutFile(*file)).value() == *file);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if (data[0] == '{') {
    troupe::ReadFile({reinterpret_cast<const char*>(data), size});
    return 0;
  }
  const auto message = std::as_bytes(std::span(data, size)).subspan(1);
  constexpr std::uint8_t kOfAStream = 255;
  if (data[0] == kOfAStream) {
    troupe::ReadStream(message);
    return 0;
  }
  troupe::Decode(data[0], message);
  troupe::Decode(data[0], troupe::WithDigest(data[0], message));
  return 0;
}
