// Any bytes as what an end and its cloud say to each other, of which the first says what it is to
// be: read, and the same when it is written and read again, or refused by one line.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "split/codec/keys_frame.h"
#include "split/wire/cloud_hello.h"
#include "split/wire/cloud_line.h"
#include "split/wire/cloud_request.h"
#include "split/wire/cut_ask.h"
#include "split/wire/draft_offer.h"

namespace troupe {
namespace {

Status ReadHello(std::string_view text) {
  const Result<CloudHello> hello = DecodeCloudHello(text);
  if (hello.ok()) TROUPE_CHECK(DecodeCloudHello(Encode(*hello)).value() == *hello);
  return hello.status();
}

Status ReadRequest(std::string_view text) {
  const auto read = [](std::string_view from) {
    return ReadJson<CloudRequest>("request", from, ReadCloudRequest);
  };
  const Result<CloudRequest> request = read(text);
  if (!request.ok()) return request.status();
  const std::string written = Encode(*request);
  TROUPE_CHECK(Encode(read(written).value()) == written);
  return OkStatus();
}

Status ReadOffer(std::string_view text) {
  const auto read = [](std::string_view from) {
    return ReadJson<DraftOffer>("offer", from, ReadDraftOffer);
  };
  const Result<DraftOffer> offer = read(text);
  if (!offer.ok()) return offer.status();
  TROUPE_CHECK(offer->tokens.size() <= kMostDraftTokens);
  TROUPE_CHECK(read(Encode(*offer)).value() == *offer);
  return OkStatus();
}

Status ReadVerdict(std::string_view text) {
  const Result<DraftVerdict> verdict = DecodeDraftVerdict(text);
  if (verdict.ok()) TROUPE_CHECK(DecodeDraftVerdict(Encode(*verdict)).value() == *verdict);
  return verdict.status();
}

Status ReadReceipt(std::string_view text) {
  const Result<StatesReceipt> receipt = DecodeStatesReceipt(text);
  if (receipt.ok()) TROUPE_CHECK(DecodeStatesReceipt(Encode(*receipt)).value() == *receipt);
  return receipt.status();
}

// The bytes behind the head are as many as there are.
Status ReadKeys(std::string_view text) {
  const std::span<const std::byte> message = std::as_bytes(std::span(text));
  const Result<KeysFrame> frame = ReadKeysFrame(message);
  if (!frame.ok()) return frame.status();
  TROUPE_CHECK(IsKeysMessage(message));
  const std::vector<std::byte> again = EncodeKeys(*frame, KeysOf(message));
  TROUPE_CHECK(ReadKeysFrame(again).value() == *frame && again.size() == message.size());
  return OkStatus();
}

// However they are cut, the lines are the same.
Status ReadLines(std::string_view text) {
  CloudLines whole, cut;
  const auto all = whole.Take(text);
  if (!all.ok()) return all.status();
  std::size_t lines = 0;
  for (const char c : text) {
    const std::vector<std::string> some = cut.Take({&c, 1}).value();
    for (const std::string& line : some) {
      TROUPE_CHECK(line == all->at(lines++));
      const Result<CloudLine> read = DecodeCloudLine(line);
      if (!read.ok()) return read.status();
      const std::string written = Encode(*read);
      TROUPE_CHECK(written.ends_with('\n') && written.find('\n') == written.size() - 1);
      TROUPE_CHECK(
          DecodeCloudLine(std::string_view(written).substr(0, written.size() - 1)).value() ==
          *read);
    }
  }
  TROUPE_CHECK(lines == all->size());
  return OkStatus();
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(1);
  const troupe::Status status = input[0] == 'h'   ? troupe::ReadHello(text)
                                : input[0] == 'r' ? troupe::ReadRequest(text)
                                : input[0] == 'o' ? troupe::ReadOffer(text)
                                : input[0] == 'v' ? troupe::ReadVerdict(text)
                                : input[0] == 's' ? troupe::ReadReceipt(text)
                                : input[0] == 'k' ? troupe::ReadKeys(text)
                                                  : troupe::ReadLines(text);
  TROUPE_CHECK(status.message().find('\n') == std::string::npos);
  return 0;
}
