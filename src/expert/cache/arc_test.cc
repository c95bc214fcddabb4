#include "expert/cache/arc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/rng.h"
#include "expert/cache/askers_for_test.h"
#include "expert/cache/expert_cache.h"
#include "expert/cache/lfu.h"
#include "expert/cache/lru.h"

namespace troupe {
namespace {

constexpr ExpertGrid kArcGrid{.layers = 1, .experts = 12};

// ARC(c) as the paper prints it (Fig. 4), over lists with the most recent first.
class PaperArc {
 public:
  explicit PaperArc(std::size_t c) : c_(c) {}

  // True: a hit.
  bool Request(std::uint32_t x) {
    if (Has(t1_, x) || Has(t2_, x)) {  // case I
      Erase(t1_, x);
      Erase(t2_, x);
      t2_.push_front(x);
      return true;
    }
    if (Has(b1_, x)) {  // case II
      p_ = std::min<double>(static_cast<double>(c_), p_ + std::max(1.0, Ratio(b2_, b1_)));
      Replace(false);
      Erase(b1_, x);
      t2_.push_front(x);
      return false;
    }
    if (Has(b2_, x)) {  // case III
      p_ = std::max(0.0, p_ - std::max(1.0, Ratio(b1_, b2_)));
      Replace(true);
      Erase(b2_, x);
      t2_.push_front(x);
      return false;
    }
    // case IV
    if (t1_.size() + b1_.size() == c_) {
      if (t1_.size() < c_) {
        b1_.pop_back();
        Replace(false);
      } else {
        t1_.pop_back();
      }
    } else if (const std::size_t all = t1_.size() + t2_.size() + b1_.size() + b2_.size();
               all >= c_) {
      if (all == 2 * c_) b2_.pop_back();
      Replace(false);
    }
    t1_.push_front(x);
    return false;
  }
  double p() const { return p_; }
  bool Holds(std::uint32_t x) const { return Has(t1_, x) || Has(t2_, x); }

 private:
  using List = std::deque<std::uint32_t>;
  static bool Has(const List& list, std::uint32_t x) {
    return std::ranges::find(list, x) != list.end();
  }
  static void Erase(List& list, std::uint32_t x) { std::erase(list, x); }
  static double Ratio(const List& a, const List& b) {
    return static_cast<double>(a.size()) / static_cast<double>(b.size());
  }
  void Replace(bool in_b2) {
    if (t1_.size() + t2_.size() < c_) return;  // the cache still has room
    const auto t1 = static_cast<double>(t1_.size());
    if (!t1_.empty() && (t1 > p_ || (in_b2 && t1 == p_))) {
      b1_.push_front(t1_.back());
      t1_.pop_back();
    } else {
      b2_.push_front(t2_.back());
      t2_.pop_back();
    }
  }

  std::size_t c_;
  double p_ = 0;
  List t1_, t2_, b1_, b2_;
};

struct Driven {
  std::uint64_t hits = 0;
  bool same = true;  // as the paper's at every step
};

Driven Drive(std::uint32_t slots, std::span<const std::uint32_t> asks) {
  auto owned = std::make_unique<Arc>(kArcGrid, std::vector<std::uint32_t>{slots});
  const Arc& arc = *owned;
  ExpertCache cache({.grid = kArcGrid, .slots = slots, .quotas = {}}, std::move(owned));
  PaperArc paper(slots);
  Driven driven;
  for (const std::uint32_t x : asks) {
    const bool hit = cache.Ask({0, x}, 1) == Residence::kResident;
    if (!hit) {
      EXPECT_TRUE(cache.Admit({0, x}).has_value());
      cache.OnLoaded({0, x});
    }
    driven.hits += hit;
    driven.same = driven.same && hit == paper.Request(x) && arc.target(0) == paper.p();
    for (std::uint32_t e = 0; e < kArcGrid.experts; ++e) {
      driven.same = driven.same && (cache.Find({0, e}) == Residence::kResident) == paper.Holds(e);
    }
  }
  return driven;
}

TEST(ArcTest, DoesWhatThePublishedAlgorithmDoesAtEveryStep) {
  Rng rng(8);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::uint32_t> asks;
    for (int i = 0; i < 400; ++i) {
      // Skewed, with phases, so that both ghost lists are hit.
      const std::uint64_t range = i / 80 % 2 == 0 ? 12 : 5;
      asks.push_back(static_cast<std::uint32_t>(std::min(rng.Below(range), rng.Below(range))));
    }
    for (const std::uint32_t slots : {1u, 2u, 3u, 5u, 8u}) {
      EXPECT_TRUE(Drive(slots, asks).same) << "round " << round << ", slots " << slots;
    }
  }
}

TEST(ArcTest, AScanDoesNotPushOutWhatIsUsedAgainAndAgain) {
  constexpr int kRounds = 20;
  std::vector<std::uint32_t> asks;
  for (int i = 0; i < kRounds; ++i) {
    for (const std::uint32_t hot : {0u, 1u, 0u, 1u}) asks.push_back(hot);
    for (std::uint32_t once = 2; once < kArcGrid.experts; ++once) asks.push_back(once);
  }
  ExpertCache lru({.grid = kArcGrid, .slots = 3, .quotas = {}}, std::make_unique<Lru>(kArcGrid));
  for (const std::uint32_t x : asks) {
    if (lru.Ask({0, x}, 1) == Residence::kResident) continue;
    lru.Admit({0, x});
    lru.OnLoaded({0, x});
  }
  // The scan takes both of them from LRU, which finds each again only the second time it is used.
  EXPECT_EQ(lru.stats().hits, 2u * kRounds);
  EXPECT_EQ(Drive(3, asks).hits, 4u * kRounds - 2);
}

TEST(ArcTest, AnExpertLoadedAheadCountsAsSeenOnceWhenItIsFirstAskedFor) {
  Arc arc(kArcGrid, {3});
  arc.OnAdmitted({0, 1});  // ahead of its use
  arc.OnAsked({0, 1}, One(1));
  arc.OnAsked({0, 2}, One(1));
  arc.OnAdmitted({0, 2});
  arc.OnAsked({0, 2}, One(1));  // seen twice: T2
  const std::vector<ExpertId> candidates = {{0, 1}, {0, 2}};
  EXPECT_EQ(arc.Choose(candidates), 0u);  // T1 exceeds its target of 0
}

// Two slots: 1 was seen again and stays, 2 was evicted and is a ghost of T1, 3 came in its place.
Arc WithAGhost() {
  Arc arc(kArcGrid, {2});
  for (const std::uint32_t e : {1u, 2u}) {
    arc.OnAsked({0, e}, One(1));
    arc.OnAdmitted({0, e});
  }
  arc.OnAsked({0, 1}, One(1));
  arc.OnAsked({0, 3}, One(1));
  arc.OnEvicted({0, 2});
  arc.OnAdmitted({0, 3});
  return arc;
}

TEST(ArcTest, AGhostLoadedAheadIsHitWhenItIsAskedFor) {
  Arc ahead = WithAGhost(), demanded = WithAGhost();
  demanded.OnAsked({0, 2}, One(1));
  demanded.OnEvicted({0, 3});
  demanded.OnAdmitted({0, 2});
  ahead.OnEvicted({0, 3});
  ahead.OnAdmitted({0, 2});
  EXPECT_EQ(ahead.target(0), 0);
  ahead.OnAsked({0, 2}, One(1));
  EXPECT_EQ(ahead.target(0), 1);
  EXPECT_EQ(demanded.target(0), 1);
  for (Arc* arc : {&ahead, &demanded}) {
    arc->OnAsked({0, 3}, One(1));  // a ghost of T1 as well: there is no T1 to grow any more
    EXPECT_EQ(arc->target(0), 2);
    const std::vector<ExpertId> candidates = {{0, 2}, {0, 1}};
    EXPECT_EQ(arc->Choose(candidates), 1u);  // both in T2, 1 the older
  }
}

TEST(ArcTest, OneThatHasToBeLoadedOnceMoreIsNoGhostMeanwhile) {
  Arc arc(kArcGrid, {2});
  arc.OnAdmitted({0, 1});  // ahead
  arc.OnAsked({0, 1}, One(1));
  arc.OnAbandoned({0, 1});
  arc.OnAdmitted({0, 1});
  EXPECT_EQ(arc.target(0), 0);
  arc.OnAsked({0, 1}, One(1));  // the second time: T2, and no ghost was hit
  EXPECT_EQ(arc.target(0), 0);
  arc.OnAsked({0, 2}, One(1));
  arc.OnAdmitted({0, 2});
  const std::vector<ExpertId> candidates = {{0, 1}, {0, 2}};
  EXPECT_EQ(arc.Choose(candidates), 1u);  // T1 exceeds its target of 0
}

TEST(ArcTest, AGhostLoadedAheadInVainIsAGhostAgain) {
  Arc arc = WithAGhost();
  arc.OnEvicted({0, 3});
  arc.OnAdmitted({0, 2});
  arc.OnEvicted({0, 2});
  arc.OnAsked({0, 2}, One(1));
  EXPECT_EQ(arc.target(0), 1);
}

TEST(ArcTest, ChoosesOnlyAmongCandidates) {
  Arc arc(kArcGrid, {4});
  for (std::uint32_t e = 0; e < 4; ++e) {
    arc.OnAsked({0, e}, One(1));
    arc.OnAdmitted({0, e});
  }
  const std::vector<ExpertId> candidates = {{0, 3}, {0, 2}};
  EXPECT_EQ(arc.Choose(candidates), 1u);
}

}  // namespace
}  // namespace troupe
