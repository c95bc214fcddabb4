#include "split/codec/state_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/axpy.h"
#include "kernels/elementwise.h"
#include "split/codec/code_groups.h"
#include "split/codec/coded_rows.h"

namespace troupe {
namespace {

constexpr std::size_t kTogether = 16;  // rows for which a basis is read once

Status Check(const CutBasis& basis, const StateCode& code) {
  TROUPE_RETURN_IF_ERROR(CheckBasis(basis));
  return CheckCode(code, basis);
}

std::vector<std::uint32_t> OthersThanKept(const CutBasis& basis) {
  std::vector<std::uint32_t> others;
  others.reserve(basis.width - basis.kept.size());
  for (std::uint32_t channel = 0; channel < basis.width; ++channel) {
    if (!std::ranges::binary_search(basis.kept, channel)) others.push_back(channel);
  }
  return others;
}

// Root mean square of these channels.
float SizeOf(const float* row, std::span<const std::uint32_t> channels) {
  double sum = 0;
  for (const std::uint32_t channel : channels) sum += double{row[channel]} * row[channel];
  return static_cast<float>(std::sqrt(sum / static_cast<double>(channels.size())));
}

}  // namespace

Result<StateEncoder> StateEncoder::Create(std::shared_ptr<const CutBasis> basis, StateCode code) {
  TROUPE_RETURN_IF_ERROR(Check(*basis, code));
  return StateEncoder(std::move(basis), code);
}

StateEncoder::StateEncoder(std::shared_ptr<const CutBasis> basis, StateCode code)
    : basis_(std::move(basis)),
      code_(code),
      frame_{.layer = basis_->layer,
             .width = basis_->width,
             .kept = code.exact() ? 0 : static_cast<std::uint32_t>(basis_->kept.size()),
             .code = code.plain(),
             .basis = DigestOf(*basis_, code)},
      others_(OthersThanKept(*basis_)),
      sizes_(kTogether),
      numbers_(code.rank == 0 ? others_.size() : kTogether * code.rank) {
  std::vector<float> columns(others_.size() * code.rank);
  for (std::size_t i = 0; i < code_.rank; ++i) {
    const std::span<const float> finder = basis_->Finder(i);
    for (std::size_t c = 0; c < others_.size(); ++c) {
      columns[c * code_.rank + i] = finder[others_[c]];
    }
  }
  columns_ = std::make_shared<const std::vector<float>>(std::move(columns));
}

std::vector<std::byte> StateEncoder::Encode(std::uint32_t first, std::span<const float> rows) {
  const std::size_t width = basis_->width, count = rows.size() / width;
  TROUPE_CHECK(rows.size() % width == 0 && count >= 1 && count <= kMostStateRows);
  frame_.first = first;
  frame_.rows = static_cast<std::uint32_t>(count);
  std::vector<std::byte> message = EncodePlain(rows);
  if (!code_.rans) return message;
  StateFrame frame = frame_;
  frame.code = code_;
  std::vector<std::byte> shorter = NewFrame(frame);
  AppendCodedRows(frame, RowsOf(std::span(std::as_const(message))), shorter);
  return shorter.size() < message.size() ? shorter : message;
}

std::vector<std::byte> StateEncoder::EncodePlain(std::span<const float> rows) {
  const std::size_t width = basis_->width, count = frame_.rows;
  std::vector<std::byte> message = NewFrame(frame_);
  const std::span<std::byte> out = RowsOf(std::span(message));
  if (code_.exact()) {
    std::ranges::copy(std::as_bytes(rows), out.begin());
    return message;
  }
  const std::size_t row_bytes = frame_.row_bytes(), apart = frame_.kept * sizeof(float);
  for (std::size_t at = 0; at < count; ++at) {
    if (code_.rank > 0 && at % kTogether == 0) {
      Project(rows.subspan(at * width, std::min(kTogether, count - at) * width));
    }
    const float* const row = rows.data() + at * width;
    const std::span<std::byte> bytes = out.subspan(at * row_bytes, row_bytes);
    for (std::size_t i = 0; i < frame_.kept; ++i) {
      std::memcpy(bytes.data() + i * sizeof(float), row + basis_->kept[i], sizeof(float));
    }
    if (code_.rank == 0) {
      std::ranges::transform(others_, numbers_.begin(), [row](std::uint32_t c) { return row[c]; });
      PackNumbers(code_.form, numbers_, bytes.subspan(apart));
    } else {
      const std::size_t slot = at % kTogether;
      std::memcpy(bytes.data() + apart, &sizes_[slot], sizeof(float));
      PackNumbers(code_.form, std::span(numbers_).subspan(slot * code_.rank, code_.rank),
                  bytes.subspan(apart + sizeof(float)));
    }
  }
  return message;
}

void StateEncoder::Project(std::span<const float> rows) {
  const std::size_t width = basis_->width, count = rows.size() / width;
  std::ranges::fill(numbers_, 0.0f);
  for (std::size_t r = 0; r < count; ++r) sizes_[r] = SizeOf(rows.data() + r * width, others_);
  for (std::size_t c = 0; c < others_.size(); ++c) {
    const std::uint32_t channel = others_[c];
    for (std::size_t r = 0; r < count; ++r) {
      if (sizes_[r] == 0) continue;
      const float sized = rows[r * width + channel] / sizes_[r] - basis_->mean[channel];
      Axpy(sized, columns_->data() + c * code_.rank, numbers_.data() + r * code_.rank, code_.rank);
    }
  }
}

Result<StateDecoder> StateDecoder::Create(std::shared_ptr<const CutBasis> basis, StateCode code) {
  TROUPE_RETURN_IF_ERROR(Check(*basis, code));
  return StateDecoder(std::move(basis), code);
}

StateDecoder::StateDecoder(std::shared_ptr<const CutBasis> basis, StateCode code)
    : basis_(std::move(basis)),
      code_(code),
      digest_(DigestOf(*basis_, code)),
      others_(OthersThanKept(*basis_)),
      sizes_(kTogether),
      numbers_(code.rank == 0 ? others_.size() : kTogether * code.rank) {}

Status StateDecoder::CheckFrame(const StateFrame& frame) const {
  if (frame.layer != basis_->layer || frame.width != basis_->width) {
    return InvalidArgument("states before layer {} of width {}, layer {} and width {} expected",
                           frame.layer, frame.width, basis_->layer, basis_->width);
  }
  if (frame.code != code_ && frame.code != code_.plain()) {
    return InvalidArgument("states as {}, {} expected", ToString(frame.code), ToString(code_));
  }
  const std::size_t kept = code_.exact() ? 0 : basis_->kept.size();
  if (frame.kept != kept || frame.basis != digest_) {
    return InvalidArgument("states of another basis than the one fitted here for layer {}",
                           basis_->layer);
  }
  return OkStatus();
}

void StateDecoder::Unpack(std::span<const std::byte> in, std::span<float> row, std::size_t slot) {
  const std::size_t apart = basis_->kept.size() * sizeof(float);
  if (code_.rank == 0) {
    UnpackNumbers(code_.form, in.subspan(apart), numbers_);
    for (std::size_t c = 0; c < others_.size(); ++c) row[others_[c]] = numbers_[c];
  } else {
    std::memcpy(&sizes_[slot], in.data() + apart, sizeof(float));
    UnpackNumbers(code_.form, in.subspan(apart + sizeof(float)),
                  std::span(numbers_).subspan(slot * code_.rank, code_.rank));
  }
}

void StateDecoder::Combine(std::span<float> rows) {
  const std::size_t width = basis_->width, count = rows.size() / width;
  for (std::size_t r = 0; r < count; ++r) {
    std::ranges::copy(basis_->mean, rows.subspan(r * width).begin());
  }
  for (std::size_t i = 0; i < code_.rank; ++i) {
    const float* const direction = basis_->Direction(i).data();
    for (std::size_t r = 0; r < count; ++r) {
      Axpy(numbers_[r * code_.rank + i], direction, rows.data() + r * width, width);
    }
  }
  for (std::size_t r = 0; r < count; ++r) Scale(sizes_[r], rows.data() + r * width, width);
}

void StateDecoder::DecodeSome(std::span<const std::byte> in, std::span<float> rows) {
  const std::size_t width = basis_->width, count = rows.size() / width;
  const std::size_t row_bytes = in.size() / count;
  for (std::size_t r = 0; r < count; ++r) {
    Unpack(in.subspan(r * row_bytes, row_bytes), rows.subspan(r * width, width), r);
  }
  if (code_.rank > 0) Combine(rows);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t i = 0; i < basis_->kept.size(); ++i) {
      std::memcpy(&rows[r * width + basis_->kept[i]], in.data() + r * row_bytes + i * sizeof(float),
                  sizeof(float));
    }
  }
}

Result<StateDecoder::States> StateDecoder::Decode(std::span<const std::byte> message) {
  TROUPE_ASSIGN_OR_RETURN(const StateFrame frame, ReadFrame(message));
  TROUPE_RETURN_IF_ERROR(CheckFrame(frame));
  std::span<const std::byte> in = RowsOf(message);
  std::vector<std::byte> plain;
  if (frame.code.rans) {
    plain.resize(frame.rows_bytes());
    TROUPE_RETURN_IF_ERROR(ReadCodedRows(frame, in, plain));
    in = plain;
  }
  const std::size_t width = frame.width, row_bytes = frame.row_bytes();
  States states{.first = frame.first, .rows = std::vector<float>(frame.rows * width)};
  if (code_.exact()) {
    std::ranges::copy(in, std::as_writable_bytes(std::span(states.rows)).begin());
  }
  for (std::size_t r = 0; !code_.exact() && r < frame.rows; r += kTogether) {
    const std::size_t some = std::min<std::size_t>(kTogether, frame.rows - r);
    DecodeSome(in.subspan(r * row_bytes, some * row_bytes),
               std::span(states.rows).subspan(r * width, some * width));
  }
  const auto bad = std::ranges::find_if(states.rows, [](float x) { return !std::isfinite(x); });
  if (bad != states.rows.end()) {
    return DataLoss("states: row {} holds a number that is not finite",
                    static_cast<std::size_t>(bad - states.rows.begin()) / width);
  }
  return states;
}

}  // namespace troupe
