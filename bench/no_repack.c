// Preloaded into llama.cpp's process: keeps it from repacking weights.
//
// For some types (Q4_0 and Q4_K here) llama.cpp writes the matrices anew in an order that its
// kernels like better: a second copy, which cannot be given back to the file it came from. Under a
// memory limit below the size of the model the process is killed while it loads. llama.cpp has a
// switch against that (use_extra_bufts), which its package for node does not pass on. Without the
// function that lists such buffers it uses the weights as they are mapped.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef void* (*LookUpFunction)(void* registry, const char* name);

// Stands before ggml's function of this name; all other names are looked up there.
void* ggml_backend_reg_get_proc_address(void* registry, const char* name) {
  if (strcmp(name, "ggml_backend_dev_get_extra_bufts") == 0) return NULL;
  // ggml is not among the libraries that RTLD_NEXT knows; the caller is linked with it.
  Dl_info caller;
  if (dladdr(__builtin_return_address(0), &caller) == 0) return NULL;
  void* const library = dlopen(caller.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  const LookUpFunction look_up =
      (LookUpFunction)dlsym(library, "ggml_backend_reg_get_proc_address");
  dlclose(library);
  return look_up == NULL ? NULL : look_up(registry, name);
}
