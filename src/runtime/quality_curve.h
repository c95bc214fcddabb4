// What answering missing experts otherwise costs on a model, and what it saves: figures of chains
// of policies at some sizes of the cache (docs/formats/quality.md). Lies beside the model as
// readable JSON. `troupe calibrate --measure-quality` measures it (quality_measurement.h);
// --quality picks from it. Exact runs never look at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/substitution/quality_limit.h"
#include "gguf/reader.h"
#include "io/link_speed.h"

namespace troupe {

struct QualityCurve {
  std::string fingerprint;  // of the model
  std::string text;         // that was read
  std::uint64_t tokens = 0;
  std::string cache, predictor;       // that it was measured with
  std::string reading;                // as reading_conditions.h describes it
  std::string machine;                // and on: what times depend on
  double perplexity = 0;              // of exact
  std::vector<MeasuredShare> shares;  // by rising share

  bool operator==(const QualityCurve&) const = default;
};

// How the shares of two curves were measured apart, in words and as `before` was; empty if they can
// stand in one file. The exact perplexity tells texts of one name and windows apart.
std::string MeasuredOtherwise(const QualityCurve& before, const QualityCurve& now);
// `now`, and of `before` the shares that it lacks, and of shares that both have the chains.
QualityCurve WithSharesOf(const QualityCurve& before, QualityCurve now);

// "m.gguf" gives "m.quality.json".
std::string QualityPathFor(std::string_view model_path);

Status SaveQuality(const QualityCurve& curve, const std::string& path);
// Refuses files of another format or version, and numbers that cannot be.
Result<QualityCurve> LoadQuality(const std::string& path);

// The machine, as far as times depend on it: its processors, the threads used, and the link that
// stands in for its disk.
std::string DescribeMachine(std::uint32_t threads, const LinkSpeed& link);

struct QualityChoice {
  ChosenChain chain;
  std::string cache, predictor, reading;  // that it was measured with
};

// The chain for a limit on the loss of perplexity, with so large a share of the experts in memory:
// by the file named, or by that beside the model, which has to be this model's.
Result<QualityChoice> ChooseChainFor(const GgufModel& model, double share, double most_loss,
                                     const std::string& path = {});

// What a time a token depends on, beside the share of the experts in memory.
struct TimedUnder {
  std::string machine;  // DescribeMachine
  std::string cache, predictor, reading;

  bool operator==(const TimedUnder&) const = default;
};
std::string ToString(const TimedUnder& conditions);

// SMoE's alpha for a time a token, from the same file; refuses times that were taken under other
// conditions.
Result<AlphaChoice> ChooseAlphaFor(const GgufModel& model, double share, double seconds,
                                   const TimedUnder& conditions, const std::string& path = {});

}  // namespace troupe
