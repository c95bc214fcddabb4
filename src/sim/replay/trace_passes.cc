#include "sim/replay/trace_passes.h"

#include <algorithm>
#include <utility>

namespace troupe {

TracePasses::TracePasses(TraceReader& reader, std::uint32_t group, bool with_routes)
    : reader_(reader), header_(reader.header()), group_(group), with_routes_(with_routes) {}

Result<bool> TracePasses::FillBlock() {
  if (block_ && segment_ < block_->segments.size()) return true;
  TROUPE_ASSIGN_OR_RETURN(block_, reader_.Next());
  segment_ = 0;
  taken_ = token_ = 0;
  broken_ = reader_.after_gap();
  return block_.has_value();
}

Status TracePasses::Skip(std::uint64_t tokens) {
  while (tokens > 0) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, FillBlock());
    if (!more) break;
    const TraceSegment& segment = block_->segments[segment_];
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, segment.tokens - taken_));
    tokens -= count;
    Take(count);
  }
  return OkStatus();
}

void TracePasses::Take(std::uint32_t count) {
  token_ += count;
  taken_ += count;
  if (taken_ < block_->segments[segment_].tokens) return;
  ++segment_;
  taken_ = 0;
}

// Whether the pass in the making ends before this segment.
bool TracePasses::Ends(const TraceSegment& segment) const {
  if (broken_) return true;
  if (taken_ > 0) return false;
  return group_ == 0 ? !segment.joins : segment.sequence != sequence_;
}

bool TracePasses::IsLone(const TraceSegment& segment) const {
  if (tokens_ > 0) return false;
  if (group_ == 1) return true;
  if (group_ > 1 || segment.tokens > 1) return false;
  return segment_ + 1 < block_->segments.size() && !block_->segments[segment_ + 1].joins;
}

void TracePasses::TakeLone(ReplayPass& pass) const {
  Label(pass);
  pass.demands.resize(header_.moe_layers.size());
  for (std::size_t l = 0; l < pass.demands.size(); ++l) {
    std::vector<ExpertDemand>& demands = pass.demands[l];
    demands.clear();
    for (const std::uint16_t id : block_->Ids(header_, l, token_)) {
      demands.push_back({.expert = id, .tokens = 1});
    }
    std::ranges::sort(demands, {}, &ExpertDemand::expert);
  }
}

// A sequence keeps its place until another takes it. A new one takes the place that it had in the
// run, or, if that is not known or is in this pass already, the next whose sequence is not in this
// pass: with one sequence at a time that is always the first.
SequenceId TracePasses::PlaceOf(const TraceSegment& segment) {
  const auto known = std::ranges::find(numbers_, segment.sequence);
  if (known != numbers_.end()) return static_cast<SequenceId>(known - numbers_.begin());
  SequenceId place = segment.place < header_.sequences ? segment.place : 0;
  while (std::ranges::find(facts_.groups, place, &RowGroupFacts::sequence) != facts_.groups.end()) {
    ++place;
  }
  if (place >= numbers_.size()) numbers_.resize(place + 1);
  numbers_[place] = segment.sequence;
  return place;
}

void TracePasses::OpenGroup(const TraceSegment& segment) {
  const bool prompt = group_ == 0 && segment.phase == TracePhase::kPrefill;
  const Phase phase = prompt ? Phase::kPrompt : Phase::kDecode;
  const SequenceId sequence = PlaceOf(segment);
  if (!facts_.groups.empty() && facts_.groups.back().sequence == sequence &&
      (group_ > 0 || facts_.groups.back().phase == phase)) {
    return;
  }
  facts_.groups.push_back(
      {.sequence = sequence, .phase = phase, .position = segment.position + taken_});
  if (counts_.size() < facts_.groups.size()) {
    counts_.emplace_back(header_.moe_layers.size() * header_.experts);
  }
}

void TracePasses::Label(ReplayPass& pass) const {
  pass.tokens = facts_.rows();
  pass.phase = phase_;
  pass.mixed = mixed_;
  pass.recorded = group_ == 0;
  pass.facts = facts_;
  if (!header_.moe_layers.empty()) {
    pass.facts.first_layer = header_.moe_layers.front();
    pass.facts.end_layer = header_.moe_layers.back() + 1;
  }
  pass.by_group.clear();
}

void TracePasses::Add(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t>& table = counts_[facts_.groups.size() - 1];
  const std::size_t choices = std::size_t{count} * header_.top_k;
  for (std::size_t l = 0; l < header_.moe_layers.size(); ++l) {
    const std::uint16_t* ids = block_->ids.data() + (l * block_->tokens + first) * header_.top_k;
    std::uint32_t* counts = table.data() + l * header_.experts;
    for (std::size_t i = 0; i < choices; ++i) ++counts[ids[i]];
  }
}

bool TracePasses::MayBeJoined() const {
  const std::size_t next = segment_ + 1;
  return group_ == 0 && (next == block_->segments.size() || block_->segments[next].joins);
}

void TracePasses::KeepLast(std::uint32_t tokens, const TraceHeader& header, PassRoutes& routes) {
  const auto keep = [](auto& rows, std::size_t most) {
    if (rows.size() > most) {
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(most));
    }
  };
  keep(routes.chosen, std::size_t{tokens} * header.top_k);
  keep(routes.scores, std::size_t{tokens} * header.experts);
}

void TracePasses::AddRoutes(std::uint32_t first, std::uint32_t count, ReplayPass& pass) const {
  const bool alone = facts_.groups.size() == 1 && !MayBeJoined();
  if (alone && count > kMostRoutedTokens) {
    first += count - kMostRoutedTokens;
    count = kMostRoutedTokens;
  }
  // No router scores below zero, and what a trace says of itself is not to be trusted.
  const auto score = [](float recorded) { return std::max(recorded, 0.0f); };
  for (std::size_t l = 0; l < pass.routes.size(); ++l) {
    PassRoutes& routes = pass.routes[l];
    for (std::uint32_t token = first; token < first + count; ++token) {
      const auto ids = block_->Ids(header_, l, token);
      const auto scores = block_->Scores(header_, l, token);
      for (std::size_t k = 0; k < ids.size(); ++k) {
        routes.chosen.push_back(
            {.expert = ids[k], .weight = scores.empty() ? 1.0f : score(scores[k])});
      }
      for (const float s : block_->AllScores(header_, l, token)) routes.scores.push_back(score(s));
    }
    if (alone) KeepLast(kMostRoutedTokens, header_, routes);
  }
}

void TracePasses::Finish(ReplayPass& pass) {
  Label(pass);
  const std::size_t groups = facts_.groups.size();
  if (groups == 1) {  // nothing joined it
    for (PassRoutes& routes : pass.routes) KeepLast(kMostRoutedTokens, header_, routes);
  }
  pass.demands.resize(header_.moe_layers.size());
  if (groups > 1) pass.by_group.resize(header_.moe_layers.size());
  for (std::size_t l = 0; l < pass.demands.size(); ++l) {
    std::vector<ExpertDemand>& demands = pass.demands[l];
    demands.clear();
    if (groups > 1) pass.by_group[l].assign(groups * header_.experts, 0);
    for (std::uint32_t e = 0; e < header_.experts; ++e) {
      std::uint32_t tokens = 0;
      for (std::size_t g = 0; g < groups; ++g) {
        std::uint32_t& count = counts_[g][l * header_.experts + e];
        if (groups > 1) pass.by_group[l][g * header_.experts + e] = count;
        tokens += std::exchange(count, 0);
      }
      if (tokens > 0) demands.push_back({.expert = e, .tokens = tokens});
    }
  }
}

Result<bool> TracePasses::Next(ReplayPass& pass) {
  tokens_ = 0;
  facts_.groups.clear();
  pass.routes.resize(with_routes_ ? header_.moe_layers.size() : 0);
  for (PassRoutes& routes : pass.routes) {
    routes.chosen.clear();
    routes.scores.clear();
  }
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, FillBlock());
    if (!more) break;
    const TraceSegment& segment = block_->segments[segment_];
    if (tokens_ > 0 && Ends(segment)) break;
    broken_ = false;
    if (tokens_ == 0) {
      sequence_ = segment.sequence;
      phase_ = segment.phase;
      mixed_ = false;
    }
    mixed_ = mixed_ || segment.phase != phase_;
    const bool lone = IsLone(segment);
    const std::uint32_t left = segment.tokens - taken_;
    const std::uint32_t count = lone ? 1 : group_ == 0 ? left : std::min(left, group_ - tokens_);
    OpenGroup(segment);
    facts_.groups.back().rows += count;
    if (lone) {
      TakeLone(pass);
    } else {
      Add(token_, count);
    }
    if (with_routes_) {
      if (facts_.groups.size() > 1 && tokens_ + count > kMostSharedTokens) {
        return DataLoss("a pass of more than {} tokens of several sequences", kMostSharedTokens);
      }
      AddRoutes(token_, count, pass);
    }
    tokens_ += count;
    Take(count);
    if (lone) return true;
    if (tokens_ == group_) break;
  }
  if (tokens_ == 0) return false;
  Finish(pass);
  return true;
}

}  // namespace troupe
