// Tells kernels with an integer dot whether to use VNNI inside the AVX-512 target: target.h says
// why Highway cannot. For kernels only; others ask ActiveTarget().
#pragma once

namespace troupe {

bool UseVnni();

}  // namespace troupe
