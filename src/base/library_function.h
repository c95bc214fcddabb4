// A function of a library that was loaded while the program runs (dlopen).
#pragma once

#include <dlfcn.h>

namespace troupe {

// False where the library has none of that name.
template <typename Function>
bool LookUp(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace troupe
