#include "expert/flow/hand_out.h"

#include <algorithm>
#include <iterator>

namespace troupe {

void HandOut::Forget() {
  residents_ = 0;
  ready_.clear();
  given_.clear();
  ready_pins_.clear();
  given_pins_.clear();
}

void HandOut::Add(const Given& expert, ExpertCache::Pin pin) {
  ready_.push_back(expert);
  ready_pins_.push_back(std::move(pin));
}

bool HandOut::IsReady(std::uint32_t expert) const {
  return std::ranges::find(ready_, expert, &Given::expert) != ready_.end();
}

std::span<const Given> HandOut::Give(std::size_t most) {
  const auto end = static_cast<std::ptrdiff_t>(std::min(most, ready_.size()));
  residents_ -= std::min(residents_, static_cast<std::size_t>(end));
  given_.assign(ready_.begin(), ready_.begin() + end);
  ready_.erase(ready_.begin(), ready_.begin() + end);
  given_pins_.assign(std::make_move_iterator(ready_pins_.begin()),
                     std::make_move_iterator(ready_pins_.begin() + end));
  ready_pins_.erase(ready_pins_.begin(), ready_pins_.begin() + end);
  return given_;
}

std::span<const Given> HandOut::GiveOne(std::uint32_t expert) {
  const auto at = std::ranges::find(ready_, expert, &Given::expert);
  TROUPE_CHECK(at != ready_.end());
  const auto pin = ready_pins_.begin() + (at - ready_.begin());
  std::rotate(ready_pins_.begin(), pin, pin + 1);
  std::rotate(ready_.begin(), at, at + 1);
  return Give(1);
}

}  // namespace troupe
