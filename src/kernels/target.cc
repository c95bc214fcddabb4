// Maps our targets to Highway's bits and CPUID. See target.h.
#include "kernels/target.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "kernels/vnni.h"

namespace troupe {
namespace {

std::int64_t HighwayBit(Target target) {
  switch (target) {
    case Target::kScalar:
      return HWY_SCALAR;
    case Target::kNeon:
      return HWY_NEON;
    case Target::kAvx2:
      return HWY_AVX2;
    case Target::kAvx512:
    case Target::kAvx512Vnni:
      return HWY_AVX3;
  }
  TROUPE_CHECK(false);
  return 0;
}

bool CpuHasAvx512Vnni() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

const std::vector<Target>& DetectedTargets() {
  static const std::vector<Target> targets = [] {
    // HWY_TARGETS is what was compiled; hwy::SupportedTargets what the CPU and the system can run.
    const std::int64_t bits = (HWY_SUPPORTED_TARGETS | HWY_STATIC_TARGET) & (HWY_TARGETS);
    std::vector<Target> found;
    for (Target target : {Target::kScalar, Target::kNeon, Target::kAvx2, Target::kAvx512}) {
      if ((bits & HighwayBit(target)) != 0) found.push_back(target);
    }
    if ((bits & HWY_AVX3) != 0 && CpuHasAvx512Vnni()) found.push_back(Target::kAvx512Vnni);
    return found;
  }();
  return targets;
}

// Not atomic: ForceTarget promises that no kernel runs meanwhile.
std::optional<Target> forced_target;

}  // namespace

std::string_view Name(Target target) {
  switch (target) {
    case Target::kScalar:
      return "scalar";
    case Target::kNeon:
      return "neon";
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx512:
      return "avx512";
    case Target::kAvx512Vnni:
      return "avx512-vnni";
  }
  TROUPE_CHECK(false);
  return "";
}

std::vector<Target> SupportedTargets() { return DetectedTargets(); }

Target ActiveTarget() { return forced_target.value_or(DetectedTargets().back()); }

void ForceTarget(std::optional<Target> target) {
  // Detected before the mask below hides some.
  const std::vector<Target>& supported = DetectedTargets();
  if (target.has_value()) {
    TROUPE_CHECK(std::find(supported.begin(), supported.end(), *target) != supported.end());
  }
  forced_target = target;
  hwy::SetSupportedTargetsForTest(target.has_value() ? HighwayBit(*target) : 0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

bool UseVnni() { return ActiveTarget() == Target::kAvx512Vnni; }

}  // namespace troupe
