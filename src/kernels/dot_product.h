// Tells kernels with an integer dot whether to use the instruction for it inside Highway's target:
// target.h says why Highway cannot. For kernels only; others ask ActiveTarget().
#pragma once

namespace troupe {

bool UseDotProduct();

}  // namespace troupe
