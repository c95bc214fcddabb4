#include "kernels/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/dot_product.h"

namespace troupe {
namespace {

using ::testing::Contains;

TEST(Target, TheBestIsActiveUntilAnotherIsForced) {
  const std::vector<Target> targets = SupportedTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(ActiveTarget(), targets.back());
  for (Target target : targets) {
    ForceTarget(target);
    EXPECT_EQ(ActiveTarget(), target);
    EXPECT_EQ(UseDotProduct(), target == Target::kAvx512Vnni || target == Target::kAvx2Vnni ||
                                   target == Target::kNeonDot);
    EXPECT_EQ(SupportedTargets(), targets) << "forcing " << Name(target) << " hid a target";
  }
  ForceTarget(std::nullopt);
  EXPECT_EQ(ActiveTarget(), targets.back());
}

TEST(Target, WhatIsSupportedWasCompiled) {
  const std::vector<Target> compiled = CompiledTargets();
  for (const Target target : SupportedTargets()) EXPECT_THAT(compiled, Contains(target));
}

TEST(Target, IsFoundByItsNameIfTheMachineRunsIt) {
  for (const Target target : SupportedTargets()) {
    EXPECT_EQ(SupportedTargetNamed(Name(target)).value(), target);
  }
  for (const std::string_view none : {"", "avx", "scalar "}) {
    EXPECT_EQ(SupportedTargetNamed(none).status().code(), Code::kInvalidArgument) << none;
  }
  EXPECT_THAT(SupportedTargetNamed("sse9").status().message(),
              ::testing::HasSubstr("'sse9', this machine runs scalar"));
}

TEST(Target, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (Target target :
       {Target::kScalar, Target::kNeon, Target::kAvx2, Target::kAvx512, Target::kAvx512Vnni}) {
    EXPECT_TRUE(names.insert(Name(target)).second) << Name(target);
  }
}

}  // namespace
}  // namespace troupe
