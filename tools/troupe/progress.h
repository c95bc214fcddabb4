// A progress bar on stderr for work that takes more than a second. Silent if stderr is no terminal
// and wiped when the work ends, so that neither a pipe nor a log ever sees it.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "model/byte_progress.h"
#include "troupe/transfer_speed.h"

namespace troupe {

// "12 s left", where the part that is done took `seconds`; empty before any is.
std::string TimeLeftText(double part, double seconds);

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(Bytes done, Bytes total);
  // Of things that are counted; `done` may be in the middle of one.
  void UpdateCount(double done, std::size_t total);
  // Of a virtual clock.
  void UpdateTime(double seconds, double end);
  // Of what comes over a network, some of which may have been here before.
  void UpdateTransfer(Bytes here, Bytes total);
  // Before anything else is printed.
  void Clear();

  // To hand to library code; this must outlive the use.
  ByteProgress Callback() {
    return [this](Bytes done, Bytes total) {
      Update(done, total);
      return true;
    };
  }

 private:
  bool IsDue();
  void Draw(double part, const std::string& amount);
  void Draw(double part, const std::string& amount, const std::string& left);

  std::string what_;
  bool is_terminal_;
  bool drawn_ = false;
  TransferSpeed speed_;
  Stopwatch since_start_;
  double next_draw_;  // seconds since the start
};

}  // namespace troupe
