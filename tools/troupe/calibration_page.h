// What `troupe calibrate` says of what it has learned: the sentence that the user came for, where
// it lies, and the figures behind it; and the same as a record.
#pragma once

#include <string>

#include "lab/calibration.h"
#include "runtime/buddy_profile.h"
#include "troupe/json_record.h"
#include "troupe/trace_calibration.h"

namespace troupe {

// `ends`: nothing else is learned or measured behind it.
std::string CalibrationPage(const ModelProfile& profile, const std::string& path, bool ends = true);
// The same of a trace, in which no forecast of a gate is.
std::string RoutesPage(const TraceCalibration& learned, const std::string& path);
std::string BuddiesPage(const BuddyProfile& profile, const std::string& path);

Json CalibrationRecord(const ModelProfile& profile, const std::string& path);
Json RoutesRecord(const TraceCalibration& learned, const std::string& path);
// The mean share of an expert's company that its buddies are.
double MeanCoverage(const BuddyLists& buddies);

}  // namespace troupe
