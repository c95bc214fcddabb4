// What the readers of calls that begin with a mark and a name share: which part comes after which,
// and sections, which hold several calls between two marks. How a name and what follows it are
// written is theirs.
#pragma once

#include <string>

#include "text/answer_parts/stepped_call_reader.h"

namespace troupe {

class SectionedCallReader : public SteppedCallReader {
 protected:
  explicit SectionedCallReader(const CallMarks& marks) : marks_(marks) {}

  // Reads the mark of a call, its name, and what ends that. kNo: no call begins here.
  virtual Scan ReadName(std::string& held, bool ended, AnswerEvents& events) = 0;
  // Reads a step of what follows the name, to the end of the call, where it says EndCall.
  virtual Scan ReadRest(std::string& held, bool ended, AnswerEvents& events) = 0;

  void EndCall() { part_ = Part::kNext; }
  const CallMarks& marks() const { return marks_; }

 private:
  enum class Part { kFirstName, kName, kRest, kNext };

  Scan Step(std::string& held, bool ended, AnswerEvents& events) final;
  Scan ReadFirstName(std::string& held, bool ended, AnswerEvents& events);
  Scan ReadNext(std::string& held, bool ended);
  // The part that comes next if that scan has found the one before it.
  Scan Then(Part next, Scan scan);

  const CallMarks marks_;
  Part part_ = Part::kFirstName;
  bool in_section_ = false;
};

}  // namespace troupe
