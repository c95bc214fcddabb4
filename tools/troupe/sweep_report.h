// What a sweep shows at its end: one sentence, a table, and a page of curves.
#pragma once

#include <string>
#include <vector>

#include "lab/sweep_points.h"

namespace troupe {

// For each size of the cache the setting that reads least of those that lose at most 1 % of
// perplexity, or else the one that loses least.
std::string SweepInBrief(const std::vector<SweepPoint>& points);

void Print(const std::vector<SweepPoint>& points);

// Curves of quality against bytes read for a token: a chart for each size of the cache, a line for
// each policy through its settings. Needs nothing from any network.
std::string SweepPage(const std::vector<SweepPoint>& points, const std::string& title);

// Names of the links without their options: the settings of one policy are one line.
std::string PolicyOf(const std::string& chain);

}  // namespace troupe
