// What a sweep has measured, one JSON line a point in one file (docs/formats/sweep.md), so that a
// sweep that was cut goes on where it was. The first line says what all points have in common; a
// sweep of anything else may not add to them. Knows no model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/status.h"
#include "lab/intervals.h"

namespace troupe {

// One chain of substitution at one size of the cache, against exact answers to the same tokens.
struct SweepPoint {
  double resident = 0;  // share of all experts that the cache holds
  std::uint32_t slots = 0;
  std::string chain;  // "exact" is one of them

  std::uint64_t tokens = 0;  // that were scored
  double perplexity = 0;
  Interval perplexity_ratio, mean_kl, top1_agreement;

  double bytes_per_token = 0;  // read
  double hit_rate = 0;         // of the asks that were left
  // Of all (token, layer, expert) slots of the text.
  double substituted = 0, dropped = 0, low = 0;
  double stall_s_per_token = 0, deciding_s_per_token = 0;
  double tokens_per_s = 0;

  bool operator==(const SweepPoint&) const = default;
};

Json ToJson(const SweepPoint& point);

class SweepPoints {
 public:
  // Makes the file, or goes on with it. An error names the first thing in which it differs from
  // `common`. A last line that was cut is measured again.
  static Result<SweepPoints> Open(const std::string& path, const Json& common);

  const std::vector<SweepPoint>& points() const { return points_; }
  // Null if it has not been measured.
  const SweepPoint* Find(double resident, const std::string& chain) const;
  // It lies on the disk when this returns.
  Status Add(const SweepPoint& point);

 private:
  SweepPoints(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status Append(std::string line);

  std::string path_;
  UniqueFd fd_;
  std::vector<SweepPoint> points_;
};

}  // namespace troupe
