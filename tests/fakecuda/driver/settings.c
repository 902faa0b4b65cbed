/* tests/fakecuda/driver/settings.c: the environment, read once. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/driver/driver.h"

static fake_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t settings_number(const char *name, int64_t otherwise) {
  const char *text = getenv(name);
  return text != NULL && *text != '\0' ? strtoll(text, NULL, 10) : otherwise;
}

static int settings_order(void) {
  const char *text = getenv("FAKECUDA_ORDER");
  if (text != NULL && strcmp(text, "eager") == 0) return TN_SIM_EAGER;
  return text != NULL && strcmp(text, "lazy") == 0 ? TN_SIM_LAZY : TN_SIM_RANDOM;
}

/* CUDA_VISIBLE_DEVICES hides devices and orders the others, as in CUDA: a number that there is not ends the
 * list. Devices that are named by their UUIDs are others than the double's. */
static void settings_read_visible(void) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  int all = settings.devices, n = 0;
  for (int i = 0; i < FAKE_DEVICES; i++) settings.visible[i] = i;
  if (at == NULL || strncmp(at, "GPU-", 4) == 0) return;
  for (char *end; n < FAKE_DEVICES; at = end + 1) {
    long device = strtol(at, &end, 10);
    if (end == at || device < 0 || device >= all) break;
    settings.visible[n++] = (int)device;
    if (*end != ',') break;
  }
  settings.devices = n;
}

static void settings_read(void) {
  settings.devices = (int)settings_number("FAKECUDA_DEVICES", 1);
  settings_read_visible();
  settings.order = settings_order();
  settings.seed = settings_number("FAKECUDA_SEED", 0);
  settings.memory = (uint64_t)settings_number("FAKECUDA_MEMORY", INT64_C(150754820096));
  settings.others = (uint64_t)settings_number("FAKECUDA_OTHERS", 0);
  settings.version = (int)settings_number("FAKECUDA_VERSION", CUDA_VERSION);
  settings.arch = (int)settings_number("FAKECUDA_ARCH", 90);
  settings.blocks = (int)settings_number("FAKECUDA_BLOCKS", 32);
}

const fake_settings *fake_settings_get(void) {
  pthread_once(&once, settings_read);
  return &settings;
}
