// Readers of calls as short as can be: <NAME followed by digits and a '>'.
#include "text/answer_parts/sectioned_call_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string_view>

namespace troupe {
namespace {

using Outcome = CallReader::Outcome;

class DigitReader final : public SectionedCallReader {
 public:
  explicit DigitReader(const CallMarks& marks) : SectionedCallReader(marks) {}

 private:
  Scan ReadName(std::string& held, bool ended, AnswerEvents& events) override {
    if (const Scan open = BeginsWith(held, marks().open, ended); open != Scan::kYes) return open;
    const std::size_t end = held.find_first_of("0123456789>");
    if (end == held.npos) return ended ? Scan::kNo : Scan::kMore;
    AddEvent(AnswerEvent::Kind::kCall, held.substr(marks().open.size(), end - 1), events);
    held.erase(0, end);
    return Scan::kYes;
  }
  // A digit a step.
  Scan ReadRest(std::string& held, bool ended, AnswerEvents& events) override {
    if (held.empty()) return ended ? Scan::kNo : Scan::kMore;
    if (held[0] == '>') {
      EndCall();
    } else {
      AddEvent(AnswerEvent::Kind::kArguments, held.substr(0, 1), events);
    }
    held.erase(0, 1);
    return Scan::kYes;
  }
};

const CallMarks kAlone{.open = "<"};
const CallMarks kInSections{.section_open = "[calls]", .section_close = "[/calls]", .open = "<"};

struct Seen {
  Outcome outcome;
  std::string calls, left;

  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << static_cast<int>(seen.outcome) << ' ' << seen.calls << " and " << seen.left;
}

// A text whose first mark comes whole, and the rest `at_once` bytes at a time.
Seen Read(const CallMarks& marks, std::string_view text, std::size_t at_once) {
  DigitReader reader(marks);
  AnswerEvents events;
  std::string held(text.substr(0, marks.first().size()));
  text.remove_prefix(held.size());
  Outcome outcome = reader.Read(held, text.empty(), events);
  while (outcome == Outcome::kMore) {
    held += text.substr(0, at_once);
    text.remove_prefix(std::min(text.size(), at_once));
    outcome = reader.Read(held, text.empty(), events);
  }
  Seen seen{.outcome = outcome, .calls = {}, .left = held + std::string(text)};
  for (const AnswerEvent& event : events) {
    seen.calls += event.kind == AnswerEvent::Kind::kCall ? " " + event.text + "=" : event.text;
  }
  return seen;
}

TEST(SectionedCallReader, ReadsTheCallsOfASectionHoweverTheTextIsCut) {
  for (const std::size_t at_once : {1, 2, 3, 100}) {
    SCOPED_TRACE(at_once);
    EXPECT_EQ(Read(kInSections, "[calls] <a12>\n<b3>[/calls] rest", at_once),
              (Seen{Outcome::kDone, " a=12 b=3", " rest"}));
  }
}

TEST(SectionedCallReader, OutsideASectionThereIsOneCall) {
  for (const CallMarks& marks : {kAlone, kInSections}) {
    EXPECT_EQ(Read(marks, "<a1><b2>", 100), (Seen{Outcome::kDone, " a=1", "<b2>"}));
  }
}

TEST(SectionedCallReader, ASectionWithoutACallIsText) {
  EXPECT_EQ(Read(kInSections, "[calls] none", 100), (Seen{Outcome::kNotCall, "", "[calls] none"}));
  EXPECT_EQ(Read(kInSections, "[calls]<a", 100), (Seen{Outcome::kNotCall, "", "[calls]<a"}));
}

TEST(SectionedCallReader, ASectionThatIsCutOffKeepsTheCallsThatCame) {
  EXPECT_EQ(Read(kInSections, "[calls]<a1><b2", 1), (Seen{Outcome::kDone, " a=1 b=2", ""}));
  EXPECT_EQ(Read(kInSections, "[calls]<a1> text", 100), (Seen{Outcome::kDone, " a=1", "text"}));
}

}  // namespace
}  // namespace troupe
