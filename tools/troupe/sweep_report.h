// What a sweep shows: a table while it runs, a record and a page of curves at its end.
#pragma once

#include <string>
#include <vector>

#include "lab/sweep_points.h"

namespace troupe {

void PrintSweepHead();
void Print(const SweepPoint& point);

// Curves of quality against bytes read for a token: a chart for each size of the cache, a line for
// each policy through its settings. Needs nothing from any network.
std::string SweepPage(const std::vector<SweepPoint>& points, const std::string& title);

// Names of the links without their options: the settings of one policy are one line.
std::string PolicyOf(const std::string& chain);

}  // namespace troupe
