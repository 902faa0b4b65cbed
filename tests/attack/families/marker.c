/* tests/attack/families/marker.c: a plugin without items, whose constructor leaves a file: the sign that
 * foreign code has run. It also stands for libraries, whose symbols are looked for behind that. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/plugin/plugin.h>

__attribute__((constructor)) static void marker_leave(void) {
  const char *path = getenv("ATTACK_MARKER");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) fclose(file);
}

TN_PLUGIN_ENTRY(marker);
TN_PLUGIN_ENTRY(marker) {
  static const tn_item *const items[] = {NULL};
  static const tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "marker", "1", "MIT",
                                   TN_BUILD_TEXT,     items};
  return &plugin;
}
