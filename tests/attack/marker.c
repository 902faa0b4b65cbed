/* tests/attack/marker.c: a shared object whose constructor leaves a file: the sign that foreign code has run.
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void marker_leave(void) {
  const char *path = getenv("ATTACK_MARKER");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) fclose(file);
}
