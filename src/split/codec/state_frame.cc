#include "split/codec/state_frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "split/codec/cut_basis.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRST";
constexpr std::uint8_t kPlainVersion = 1, kRansVersion = 2;

// Little-endian, like every machine that Troupe runs on.
static_assert(std::endian::native == std::endian::little);
struct Head {
  std::array<char, 4> magic;
  std::uint8_t version;
  std::uint8_t form;
  std::uint16_t zero;
  std::uint32_t width, kept, layer, rank, first, rows;
  std::uint64_t basis;
};
static_assert(sizeof(Head) == kStateFrameBytes);

template <typename... Args>
Status Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return DataLoss("states: {}", fmt::format(format, std::forward<Args>(args)...));
}

Status CheckHead(const Head& head) {
  if (std::string_view(head.magic.data(), head.magic.size()) != kMagic) {
    return Wrong("they do not begin with {}", kMagic);
  }
  if ((head.version != kPlainVersion && head.version != kRansVersion) || head.zero != 0) {
    return Wrong("version {}, {} or {} expected", head.version, kPlainVersion, kRansVersion);
  }
  if (head.form > static_cast<std::uint8_t>(kLastStateForm)) {
    return Wrong("form {}, 0 to {} expected", head.form, static_cast<int>(kLastStateForm));
  }
  if (head.version == kRansVersion && head.form == 0) {
    return Wrong("floats by an entropy coder, codes expected");
  }
  if (head.width < 1 || head.width > kMostStateWidth) {
    return Wrong("width {}, 1 to {} expected", head.width, kMostStateWidth);
  }
  if (head.kept >= head.width) {
    return Wrong("{} channels kept apart, fewer than {} expected", head.kept, head.width);
  }
  if (head.rank > head.width - head.kept) {
    return Wrong("rank {}, 0 to {} expected", head.rank, head.width - head.kept);
  }
  if (head.rows < 1 || head.rows > kMostStateRows) {
    return Wrong("{} rows, 1 to {} expected", head.rows, kMostStateRows);
  }
  if (head.first > kMostStatePosition) {
    return Wrong("position {}, at most {} expected", head.first, kMostStatePosition);
  }
  return OkStatus();
}

}  // namespace

std::vector<std::byte> NewFrame(const StateFrame& frame) {
  Head head{.magic = {},
            .version = frame.code.rans ? kRansVersion : kPlainVersion,
            .form = static_cast<std::uint8_t>(frame.code.form),
            .zero = 0,
            .width = frame.width,
            .kept = frame.kept,
            .layer = frame.layer,
            .rank = frame.code.rank,
            .first = frame.first,
            .rows = frame.rows,
            .basis = frame.basis};
  std::ranges::copy(kMagic, head.magic.begin());
  TROUPE_CHECK(CheckHead(head).ok());
  std::vector<std::byte> message(kStateFrameBytes + (frame.code.rans ? 0 : frame.rows_bytes()));
  std::memcpy(message.data(), &head, sizeof head);
  return message;
}

Result<StateFrame> ReadFrame(std::span<const std::byte> message) {
  Head head;
  if (message.size() < sizeof head) {
    return Wrong("{} bytes, a head of {} expected", message.size(), sizeof head);
  }
  std::memcpy(&head, message.data(), sizeof head);
  TROUPE_RETURN_IF_ERROR(CheckHead(head));
  const StateFrame frame{
      .layer = head.layer,
      .width = head.width,
      .kept = head.kept,
      .code = {.rank = head.rank,
               .form = static_cast<StateForm>(head.form),
               .rans = head.version == kRansVersion},
      .basis = head.basis,
      .first = head.first,
      .rows = head.rows,
  };
  // 2^12 rows at most of 2^23 bytes: no overflow.
  const std::size_t expected = frame.rows_bytes();
  if (frame.code.rans && message.size() - sizeof head >= expected) {
    return Wrong("{} bytes of rows by an entropy coder, fewer than {} expected for {} rows",
                 message.size() - sizeof head, expected, frame.rows);
  }
  if (!frame.code.rans && message.size() - sizeof head != expected) {
    return Wrong("{} bytes of rows, {} expected for {} rows", message.size() - sizeof head,
                 expected, frame.rows);
  }
  return frame;
}

}  // namespace troupe
