// Highway's bits for 64-bit Arm: one up to 1.0.3, then one for processors without AES as well,
// which are NEON to every kernel.
#pragma once

#include "hwy/detect_targets.h"

#ifdef HWY_NEON_WITHOUT_AES
#define TROUPE_NEON_BITS (HWY_NEON | HWY_NEON_WITHOUT_AES)
#else
#define TROUPE_NEON_BITS HWY_NEON
#endif

#define TROUPE_IS_NEON ((HWY_TARGET & TROUPE_NEON_BITS) != 0)
