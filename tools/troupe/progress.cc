#include "troupe/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "troupe/terminal_kind.h"

namespace troupe {
namespace {

constexpr double kFirstDraw = 1.0;  // seconds: shorter work needs no bar
constexpr double kBetweenDraws = 0.1;
constexpr int kWidth = 30;

}  // namespace

std::string TimeLeftText(double part, double seconds) {
  if (part <= 0) return "";
  return fmt::format("{:.0f} s left", seconds * (1 - std::min(part, 1.0)) / part);
}

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), is_terminal_(TakesEscapes(STDERR_FILENO)), next_draw_(kFirstDraw) {}

bool ProgressBar::IsDue() {
  if (!is_terminal_ || since_start_.Seconds() < next_draw_) return false;
  next_draw_ = since_start_.Seconds() + kBetweenDraws;
  return true;
}

void ProgressBar::Update(Bytes done, Bytes total) {
  if (!IsDue()) return;
  Draw(total > Bytes() ? static_cast<double>(done.count()) / static_cast<double>(total.count()) : 0,
       fmt::format("{} of {}", ToString(done), ToString(total)));
}

void ProgressBar::UpdateCount(double done, std::size_t total) {
  if (!IsDue()) return;
  Draw(total > 0 ? done / static_cast<double>(total) : 0,
       fmt::format("{} of {}", static_cast<std::size_t>(done), total));
}

void ProgressBar::UpdateTime(double seconds, double end) {
  if (!IsDue()) return;
  Draw(end > 0 ? std::min(seconds / end, 1.0) : 0,
       fmt::format("{:.0f} of {:.0f} virtual seconds", seconds, end));
}

void ProgressBar::UpdateTransfer(Bytes here, Bytes total) {
  if (!IsDue()) return;
  speed_.Note(since_start_.Seconds(), here);
  const double part = total > Bytes() ? AsDouble(here) / AsDouble(total) : 0;
  Draw(part, fmt::format("{} of {}", ToString(here), ToString(total)), speed_.Text(total - here));
}

void ProgressBar::Draw(double part, const std::string& amount) {
  Draw(part, amount, TimeLeftText(part, since_start_.Seconds()));
}

void ProgressBar::Draw(double part, const std::string& amount, const std::string& left) {
  drawn_ = true;
  const int filled = static_cast<int>(std::clamp(part, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{:.<{}}] {:3.0f}%  {}{}{}", what_, "", filled, "",
             kWidth - filled, 100 * part, amount, left.empty() ? "" : ", ", left);
  std::fflush(stderr);
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace troupe
