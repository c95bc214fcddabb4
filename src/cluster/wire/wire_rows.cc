#include "cluster/wire/wire_rows.h"

#include <algorithm>
#include <bitset>
#include <cstring>

namespace troupe {

void PackRow(std::span<const ActivationGroup> groups, std::span<std::byte> row) {
  TROUPE_CHECK(row.size() == groups.size() * kWireGroupBytes);
  std::byte* out = row.data();
  for (const ActivationGroup& group : groups) {
    std::memcpy(out, &group.scale, sizeof group.scale);
    std::memcpy(out + sizeof group.scale, group.codes, sizeof group.codes);
    out += kWireGroupBytes;
  }
}

void UnpackRow(std::span<const std::byte> row, std::span<ActivationGroup> groups) {
  TROUPE_CHECK(row.size() == groups.size() * kWireGroupBytes);
  const std::byte* in = row.data();
  for (ActivationGroup& group : groups) {
    std::memcpy(&group.scale, in, sizeof group.scale);
    std::memcpy(group.codes, in + sizeof group.scale, sizeof group.codes);
    in += kWireGroupBytes;
    for (std::size_t half = 0; half < 2; ++half) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < 16; ++i) sum += group.codes[half * 16 + i];
      group.half_sum[half] = sum;
    }
    group.sum = group.half_sum[0] + group.half_sum[1];
  }
}

bool WireRows::operator==(const WireRows& other) const {
  return form == other.form && width == other.width && count == other.count &&
         std::ranges::equal(bytes, other.bytes);
}

std::uint32_t ReadWidth(FrameReader& in, RowForm form) {
  const auto width = in.Read<std::uint32_t>("width");
  if (!TakesWidth(form, width)) {
    const bool in_groups = form == RowForm::kInt8;
    in.Fail("{} found, {} to {}{} expected", width, in_groups ? kGroupCols : 1, kMaxWireWidth,
            in_groups ? " in steps of 32" : "");
  }
  return in.ok() ? width : 0;
}

void CheckWidth(RowForm form, std::uint32_t width) { TROUPE_CHECK(TakesWidth(form, width)); }

std::span<const ExpertRows> ReadExpertRows(FrameReader& in, std::size_t count) {
  const auto experts = in.ReadArray<ExpertRows>(count, "experts");
  std::bitset<65536> seen;
  for (const ExpertRows& expert : experts) {
    if (expert.rows == 0) in.Fail("expert {} without a row found, 1 expected", expert.expert);
    if (seen[expert.expert]) in.Fail("expert {} found twice, once expected", expert.expert);
    seen[expert.expert] = true;
  }
  return in.ok() ? experts : std::span<const ExpertRows>();
}

WireRows ReadRows(FrameReader& in, RowForm form, std::uint32_t width, std::size_t count) {
  const auto bytes = in.ReadRest("rows");
  // 2^32 rows at most of 2^22 bytes: no overflow.
  if (bytes.size() != count * WireRowBytes(form, width)) {
    in.Fail("{} bytes found, {} rows of {} bytes expected", bytes.size(), count,
            WireRowBytes(form, width));
  }
  if (!in.ok()) return {};
  TROUPE_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0);
  return {form, width, count, bytes};
}

}  // namespace troupe
