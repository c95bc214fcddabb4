// The body of a request while it comes: takes its part of the memory that all bodies share as its
// bytes come, never as they are announced, so that who announces much and sends little takes
// nothing from others. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/byte_budget.h"

namespace troupe {

class GrowingBody {
 public:
  // Before the first byte. `announced`: its length; 0: that is not known.
  void Expect(std::shared_ptr<ByteBudget> budget, std::size_t announced) {
    budget_ = std::move(budget);
    announced_ = announced;
  }

  // False, with nothing changed: there is no memory. While a body moves to a larger place both
  // places count.
  bool Append(std::string_view bytes) {
    const std::size_t size = text_.size() + bytes.size();
    if (size > place_ && !MoveTo(PlaceFor(size))) return false;
    text_.append(bytes);
    return true;
  }

  std::size_t size() const { return text_.size(); }
  std::size_t held() const { return place_; }  // of the memory
  std::string TakeText() { return std::exchange(text_, {}); }
  // Of the text, to be kept as long as it.
  std::shared_ptr<HeldBytes> TakeMemory() {
    place_ = 0;
    return std::exchange(memory_, nullptr);
  }
  void Drop() {
    TakeText();
    TakeMemory();
  }

 private:
  // At most twice what has come.
  std::size_t PlaceFor(std::size_t size) const {
    constexpr std::size_t kLeast = 4096;
    const std::size_t twice = std::max(kLeast, 2 * place_);
    return std::max(size, announced_ == 0 ? twice : std::min(announced_, twice));
  }

  bool MoveTo(std::size_t place) {
    auto memory = std::make_shared<HeldBytes>(budget_);
    if (!memory->GrowTo(place)) return false;
    std::string text;
    text.reserve(place);
    text_ = std::move(text.append(text_));
    memory_ = std::move(memory);
    place_ = place;
    return true;
  }

  std::shared_ptr<ByteBudget> budget_;
  std::size_t announced_ = 0, place_ = 0;
  std::string text_;
  std::shared_ptr<HeldBytes> memory_;
};

}  // namespace troupe
