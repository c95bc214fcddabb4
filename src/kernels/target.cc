// Maps our targets to Highway's bits and CPUID. See target.h.
#include "kernels/target.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "kernels/dot_product.h"
#include "kernels/neon_bits.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace troupe {
namespace {

std::int64_t HighwayBits(Target target) {
  switch (target) {
    case Target::kScalar:
      return HWY_SCALAR;
    case Target::kNeon:
    case Target::kNeonDot:
      return TROUPE_NEON_BITS;
    case Target::kAvx2:
    case Target::kAvx2Vnni:
      return HWY_AVX2;
    case Target::kAvx512:
    case Target::kAvx512Vnni:
      return HWY_AVX3;
  }
  TROUPE_CHECK(false);
  return 0;
}

bool HasDotProduct(Target target) {
  switch (target) {
    case Target::kScalar:
    case Target::kNeon:
    case Target::kAvx2:
    case Target::kAvx512:
      return false;
    case Target::kNeonDot:
    case Target::kAvx2Vnni:
    case Target::kAvx512Vnni:
      return true;
  }
  TROUPE_CHECK(false);
  return false;
}

// What the CPU says, beyond what Highway asks it.
bool CpuHasDotProduct([[maybe_unused]] Target target) {
#if HWY_ARCH_X86
  if (target == Target::kAvx512Vnni) return __builtin_cpu_supports("avx512vnni");
  unsigned a = 0, b = 0, c = 0, d = 0;  // AVX-VNNI: neither GCC 12 nor Clang 14 has a name for it
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && ((a >> 4) & 1) != 0;
#elif HWY_ARCH_ARM_A64 && defined(__linux__) && HWY_COMPILER_GCC_ACTUAL
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

// HWY_TARGETS is what was compiled; hwy::SupportedTargets what the CPU and the system can run.
constexpr std::int64_t kCompiledBits = HWY_TARGETS;

// Slowest first.
constexpr std::array kAllTargets = {Target::kScalar,    Target::kNeon,     Target::kNeonDot,
                                    Target::kAvx2,      Target::kAvx2Vnni, Target::kAvx512,
                                    Target::kAvx512Vnni};

// First asked before ForceTarget hides some.
std::int64_t DetectedBits() {
  static const std::int64_t bits = (HWY_SUPPORTED_TARGETS | HWY_STATIC_TARGET) & kCompiledBits;
  return bits;
}

const std::vector<Target>& DetectedTargets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> found;
    for (const Target target : kAllTargets) {
      if ((DetectedBits() & HighwayBits(target)) == 0) continue;
      if (HasDotProduct(target) && !CpuHasDotProduct(target)) continue;
      found.push_back(target);
    }
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
    case Target::kNeonDot:
      return "neon-dot";
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx2Vnni:
      return "avx2-vnni";
    case Target::kAvx512:
      return "avx512";
    case Target::kAvx512Vnni:
      return "avx512-vnni";
  }
  TROUPE_CHECK(false);
  return "";
}

std::vector<Target> CompiledTargets() {
  std::vector<Target> compiled;
  for (const Target target : kAllTargets) {
    if ((kCompiledBits & HighwayBits(target)) != 0) compiled.push_back(target);
  }
  return compiled;
}

std::vector<Target> SupportedTargets() { return DetectedTargets(); }

Result<Target> SupportedTargetNamed(std::string_view name) {
  std::string names;
  for (const Target target : DetectedTargets()) {
    if (Name(target) == name) return target;
    names += (names.empty() ? "" : ", ") + std::string(Name(target));
  }
  return InvalidArgument("'{}', this machine runs {}", name, names);
}

Target ActiveTarget() { return forced_target.value_or(DetectedTargets().back()); }

void ForceTarget(std::optional<Target> target) {
  const std::vector<Target>& supported = DetectedTargets();
  if (target.has_value()) {
    TROUPE_CHECK(std::find(supported.begin(), supported.end(), *target) != supported.end());
  }
  forced_target = target;
  hwy::SetSupportedTargetsForTest(target.has_value() ? HighwayBits(*target) & DetectedBits() : 0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

bool UseDotProduct() { return HasDotProduct(ActiveTarget()); }

}  // namespace troupe
