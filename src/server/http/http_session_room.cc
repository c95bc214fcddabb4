// A connection whose request takes room that others may need: how fast it comes, and how it goes.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "server/http/http_session.h"

namespace troupe {
namespace {

// Of the memory for bodies: what every request may have.
constexpr std::size_t kOwnRoom = 4096;

}  // namespace

std::optional<double> HttpSession::Pace() const {
  if (closed_ || lingers_ || is_refused_ || !reader_.begun()) return std::nullopt;
  const auto age = SteadyClock::now() - part_at_;
  if (age < owner_.limits().body_start) return std::nullopt;
  if (ahead_) return 0.0;
  return static_cast<double>(came_ - came_to_part_) / std::chrono::duration<double>(age).count();
}

bool HttpSession::HoldsRoom() const { return reader_.held() > kOwnRoom; }

void HttpSession::GiveWay() {
  if (ahead_) return OnNoRoom();
  if (!reader_.has_head() && !exchange_) {
    reader_.GiveBack();
    return Close();
  }
  RefuseBody(TooLate("its memory"));
}

void HttpSession::MakeWay(bool told) {
  if (!told || !reader_.begun()) return Close();
  Refuse(TooLate("its connection"));
}

HttpResponse HttpSession::TooLate(std::string_view needed) const {
  HttpResponse late = owner_.ErrorOf(
      408, fmt::format("the request came slowly while others waited for {}; try again", needed),
      reader_.head());
  late.headers.emplace_back("Retry-After", "1");
  return late;
}

void HttpSession::BeginPart() {
  came_to_part_ = came_;
  part_at_ = SteadyClock::now();
}

}  // namespace troupe
