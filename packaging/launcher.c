/* The `troupe` of `make static`: runs NAME.bin by the loader and the libraries that lie with it, so that
 * nothing of the machine's own is needed. It is static itself and needs no /proc. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef LOADER
#error "LOADER names the loader among the libraries: ld-linux-x86-64.so.2"
#endif

static int Fail(const char* what) {
  fprintf(stderr, "troupe: %s: the folder of the program is not complete\n", what);
  return 1;
}

int main(int argc, char** argv) {
  const char* started_as = (const char*)getauxval(AT_EXECFN);
  char self[PATH_MAX];
  if (started_as == NULL || realpath(started_as, self) == NULL) return Fail("its own name");
  char* const slash = strrchr(self, '/');
  *slash = '\0';
  const char* const name = slash + 1;

  /* Beside `troupe` the libraries lie in lib/; the node's launcher lies among them. */
  char libraries[PATH_MAX + 8], loader[PATH_MAX + 64], program[PATH_MAX + PATH_MAX];
  snprintf(libraries, sizeof(libraries), "%s/lib", self);
  if (access(libraries, F_OK) != 0) snprintf(libraries, sizeof(libraries), "%s", self);
  snprintf(loader, sizeof(loader), "%s/%s", libraries, LOADER);
  snprintf(program, sizeof(program), "%s/%s.bin", libraries, name);

  char** const words = calloc((size_t)argc + 7, sizeof(char*));
  if (words == NULL) return Fail("memory");
  char* const before[] = {loader, "--library-path", libraries, "--argv0", argv[0], program};
  const int count = sizeof(before) / sizeof(before[0]);
  for (int i = 0; i < count; ++i) words[i] = before[i];
  for (int i = 1; i < argc; ++i) words[count + i - 1] = argv[i];
  execv(loader, words);
  return Fail(loader);
}
