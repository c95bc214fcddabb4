// What an answer takes in a place, and what answers have taken there: the measured costs by which
// it is decided where the next one goes. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "split/flow/side.h"

namespace troupe {

// The part of an answer that is still to come.
struct AnswerTask {
  std::size_t read = 0;    // tokens before the next one
  std::size_t tokens = 0;  // to be chosen, as far as can be known
  bool one_token = false;  // that is all there will be
  bool exact = true;       // rows of its prompt may lose nothing where they cross a cut
  // Of those to be read what each Side has kept, as far as is known here (known_prefixes.h).
  std::array<std::size_t, 2> kept = {};

  // What is to be read there is what it has not kept; the last token always is.
  AnswerTask In(Side place) const {
    AnswerTask there = *this;
    const std::size_t found = kept[static_cast<std::size_t>(place)];
    there.read -= std::min(found, read - std::min<std::size_t>(read, 1));
    there.kept = {};
    return there;
  }
  bool operator==(const AnswerTask&) const = default;
};

struct PlaceCosts {
  double wait_seconds = 0;   // for others, before it begins
  double link_seconds = 0;   // until a request is there and its first token is back
  double read_seconds = 0;   // a token that is read
  double token_seconds = 0;  // a token that is chosen

  // Of the processors there.
  double ComputeSeconds(const AnswerTask& task) const {
    return read_seconds * static_cast<double>(task.read) +
           token_seconds * static_cast<double>(task.tokens);
  }
  double FinishSeconds(const AnswerTask& task) const {
    return wait_seconds + link_seconds + ComputeSeconds(task);
  }

  bool operator==(const PlaceCosts&) const = default;
};

// What it costs users that the cloud chooses nothing, for people: "11 ms a token here in place of
// 1.3 ms". Empty: not measured in both places.
std::string CostOfBeingAlone(const std::optional<PlaceCosts>& end,
                             const std::optional<PlaceCosts>& cloud);

// What one answer took, as far as it came. What a token of a prompt takes it cannot say: its own
// were read among those of others.
struct MeasuredAnswer {
  std::size_t tokens = 0;    // after the first
  double token_seconds = 0;  // all these
  // A token, as the place said when the first one came: it counts this answer among those that it
  // has from then on. 0: it said nothing.
  double told_token_seconds = 0;
  double link_seconds = 0;
};

// Running means, in which a new answer has a fourth of the weight.
class PlaceMeter {
 public:
  void OnAnswer(const MeasuredAnswer& answer);
  // As the place itself says of a new answer, beside those that it has now; 0: nothing. Answers
  // tell by how much that is wrong, and not what a token takes: an answer may be long ago, and the
  // place have others to answer since.
  void OnTold(double read_seconds, double token_seconds);
  double told_token_seconds() const { return told_token_; }

  // Nothing until a token has been read and one chosen there.
  std::optional<PlaceCosts> Costs(double wait_seconds) const;

 private:
  class Mean {
   public:
    void Add(double value);
    double Or(double otherwise) const { return value_.value_or(otherwise); }

   private:
    std::optional<double> value_;
  };
  double read_seconds_ = 0, told_token_ = 0;
  Mean of_told_;  // what tokens took, of what was told
  Mean token_, link_;
};

}  // namespace troupe
