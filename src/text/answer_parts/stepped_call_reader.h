// Reads calls one step after the other, as far as the text has come.
#pragma once

#include <string>

#include "text/answer_parts/call_reader.h"
#include "text/answer_parts/part_scan.h"

namespace troupe {

class SteppedCallReader : public CallReader {
 public:
  Outcome Read(std::string& held, bool ended, AnswerEvents& events) final {
    for (;;) {
      const Scan scan = Step(held, ended, events);
      if (scan == Scan::kMore) return Outcome::kMore;
      if (scan == Scan::kNo) return begun_ ? Outcome::kDone : Outcome::kNotCall;
      begun_ = true;
    }
  }

 protected:
  // kNo: what is left is no part of a call; at the first step: what is held is none.
  virtual Scan Step(std::string& held, bool ended, AnswerEvents& events) = 0;

 private:
  bool begun_ = false;
};

}  // namespace troupe
