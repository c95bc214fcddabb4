// The instruction set that the kernels run on. It is found once, at the first call of a kernel
// (Highway's dynamic dispatch); tests and benchmarks force another, and so does who starts `troupe`
// with TROUPE_KERNELS. Kernels give the same bits on every target, so a choice made here changes
// speed and nothing else.
//
// A kernel is one .cc that Highway compiles once a target; axpy.cc is the smallest example. Two
// rules keep the bits equal: write Fma (simd.h) where a product is fused with a sum, never
// hn::MulAdd (the scalar target would round twice), and reduce over a fixed number of lanes (16),
// never over the lanes that the target happens to have.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// x86-64 without AVX2 runs kScalar: machines that old are too slow for more code to pay. Those with
// a name in -Dot or -Vnni have an instruction for the products of 8-bit integers, which does not
// follow Highway's targets (its AVX3_DL asks for Ice Lake, and Cascade Lake has VNNI): they run the
// code of the target before them with another inner dot.
enum class Target { kScalar, kNeon, kNeonDot, kAvx2, kAvx2Vnni, kAvx512, kAvx512Vnni };

std::string_view Name(Target target);

// The targets that kernels were compiled for, slowest first: more than most machines can run.
std::vector<Target> CompiledTargets();

// The targets that this machine can run, slowest first; never empty.
std::vector<Target> SupportedTargets();

// One of these, by its name. kInvalidArgument: it is none of them.
Result<Target> SupportedTargetNamed(std::string_view name);

// The target that kernels use now.
Target ActiveTarget();

// Makes kernels use `target`, which must be supported; nullopt goes back to the best. Not to be
// called while another thread runs a kernel.
void ForceTarget(std::optional<Target> target);

}  // namespace troupe
