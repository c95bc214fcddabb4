#include "split/codec/code_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"

namespace troupe {
namespace {

constexpr std::size_t kScaleBytes = sizeof(std::uint16_t);
constexpr int kNibbleZero = 8;  // what stands for code 0 in 4 bits

std::size_t CodeBytes(StateForm form, std::size_t count) {
  return form == StateForm::kInt8 ? count : (count + 1) / 2;
}

// As the group's bytes say it.
std::uint16_t ScaleOf(std::span<const float> group, float most_code) {
  float most = 0;
  for (const float x : group) {
    if (!std::isfinite(x)) return FloatToBf16(std::numeric_limits<float>::quiet_NaN());
    most = std::max(most, std::fabs(x));
  }
  return FloatToBf16(most / most_code);
}

int CodeOf(float x, float scale, float most_code) {
  if (!(scale > 0)) return 0;  // a group of zeros, or one that holds a NaN
  return static_cast<int>(std::clamp(std::nearbyint(x / scale), -most_code, most_code));
}

void PackGroup(StateForm form, std::span<const float> group, std::byte* out) {
  const float most_code = form == StateForm::kInt8 ? 127 : 7;
  const std::uint16_t scale_bits = ScaleOf(group, most_code);
  const float scale = Bf16ToFloat(scale_bits);
  std::memcpy(out, &scale_bits, kScaleBytes);
  out += kScaleBytes;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const int code = CodeOf(group[i], scale, most_code);
    if (form == StateForm::kInt8) {
      out[i] = static_cast<std::byte>(code);
    } else if (i % 2 == 0) {
      out[i / 2] = static_cast<std::byte>(code + kNibbleZero);
    } else {
      out[i / 2] |= static_cast<std::byte>((code + kNibbleZero) << 4);
    }
  }
}

void UnpackGroup(StateForm form, const std::byte* in, std::span<float> group) {
  std::uint16_t scale_bits = 0;
  std::memcpy(&scale_bits, in, kScaleBytes);
  const float scale = Bf16ToFloat(scale_bits);
  in += kScaleBytes;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(in[form == StateForm::kInt8 ? i : i / 2]);
    const int code = form == StateForm::kInt8
                         ? static_cast<std::int8_t>(byte)
                         : static_cast<int>((byte >> (i % 2 * 4)) & 15) - kNibbleZero;
    group[i] = scale * static_cast<float>(code);
  }
}

}  // namespace

std::size_t PackedBytes(StateForm form, std::size_t count) {
  if (form == StateForm::kFloat) return count * sizeof(float);
  const std::size_t left = count % kCodedTogether;
  return count / kCodedTogether * (kScaleBytes + CodeBytes(form, kCodedTogether)) +
         (left == 0 ? 0 : kScaleBytes + CodeBytes(form, left));
}

void PackNumbers(StateForm form, std::span<const float> numbers, std::span<std::byte> bytes) {
  TROUPE_CHECK(bytes.size() == PackedBytes(form, numbers.size()));
  if (form == StateForm::kFloat) {
    std::ranges::copy(std::as_bytes(numbers), bytes.begin());
    return;
  }
  while (!numbers.empty()) {
    const std::size_t count = std::min(kCodedTogether, numbers.size());
    PackGroup(form, numbers.first(count), bytes.data());
    bytes = bytes.subspan(PackedBytes(form, count));
    numbers = numbers.subspan(count);
  }
}

void UnpackNumbers(StateForm form, std::span<const std::byte> bytes, std::span<float> numbers) {
  TROUPE_CHECK(bytes.size() == PackedBytes(form, numbers.size()));
  if (form == StateForm::kFloat) {
    std::ranges::copy(bytes, std::as_writable_bytes(numbers).begin());
    return;
  }
  while (!numbers.empty()) {
    const std::size_t count = std::min(kCodedTogether, numbers.size());
    UnpackGroup(form, bytes.data(), numbers.first(count));
    bytes = bytes.subspan(PackedBytes(form, count));
    numbers = numbers.subspan(count);
  }
}

}  // namespace troupe
