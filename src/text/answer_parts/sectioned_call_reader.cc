#include "text/answer_parts/sectioned_call_reader.h"

#include <utility>

#include "base/check.h"

namespace troupe {

Scan SectionedCallReader::Step(std::string& held, bool ended, AnswerEvents& events) {
  switch (part_) {
    case Part::kFirstName:
      return Then(Part::kRest, ReadFirstName(held, ended, events));
    case Part::kName:
      return Then(Part::kRest, ReadName(held, ended, events));
    case Part::kRest:
      return ReadRest(held, ended, events);
    case Part::kNext:
      return Then(Part::kName, ReadNext(held, ended));
  }
  TROUPE_CHECK(false);
}

Scan SectionedCallReader::Then(Part next, Scan scan) {
  if (scan == Scan::kYes) part_ = next;
  return scan;
}

// A section without a call in it is none: its mark is taken with the first call.
Scan SectionedCallReader::ReadFirstName(std::string& held, bool ended, AnswerEvents& events) {
  if (marks_.section_open.empty() || !held.starts_with(marks_.section_open)) {
    return ReadName(held, ended, events);
  }
  const std::size_t at = marks_.section_open.size();
  std::string call = held.substr(at + BlanksAt(held, at));
  const Scan scan = ReadName(call, ended, events);
  if (scan != Scan::kYes) return scan;
  held = std::move(call);
  in_section_ = true;
  return scan;
}

// kYes if another call follows, which is not taken. Takes the end of the section.
Scan SectionedCallReader::ReadNext(std::string& held, bool ended) {
  if (!in_section_) return Scan::kNo;
  held.erase(0, BlanksAt(held));
  const Scan call = BeginsWith(held, marks_.open, ended);
  const Scan close = BeginsWith(held, marks_.section_close, ended);
  if (call == Scan::kYes) return call;
  if (close == Scan::kYes) {
    held.erase(0, marks_.section_close.size());
    return Scan::kNo;
  }
  return call == Scan::kMore || close == Scan::kMore ? Scan::kMore : Scan::kNo;
}

}  // namespace troupe
