/* tests/integration/plugins/install.c: a Tenon installed into the workshop. */
#include <unistd.h>

#include "workshop.h"

void workshop_install(void) {
  char folder[512], path[1024];
  workshop_do("%s install -C '%s' --no-rebuild --destdir \"$PWD/root\"", MESON, BUILD_FOLDER);
  setenv("TENON", "root" PREFIX "/" BINDIR "/tenon", 1);
  assert_non_null(getcwd(folder, sizeof(folder)));
  snprintf(path, sizeof(path), "%s/root" PREFIX "/" LIBDIR, folder);
  setenv("LD_LIBRARY_PATH", path, 1);
  snprintf(path, sizeof(path), "%s/root" PREFIX "/" LIBDIR "/pkgconfig", folder);
  setenv("PKG_CONFIG_PATH", path, 1);
  snprintf(path, sizeof(path), "%s/root", folder);
  setenv("PKG_CONFIG_SYSROOT_DIR", path, 1);
  setenv("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1", 1);
}
