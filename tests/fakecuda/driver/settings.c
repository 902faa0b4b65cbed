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

static void settings_read(void) {
  settings.devices = (int)settings_number("FAKECUDA_DEVICES", 1);
  settings.order = settings_order();
  settings.seed = settings_number("FAKECUDA_SEED", 0);
  settings.memory = (uint64_t)settings_number("FAKECUDA_MEMORY", INT64_C(150754820096));
  settings.others = (uint64_t)settings_number("FAKECUDA_OTHERS", 0);
  settings.version = (int)settings_number("FAKECUDA_VERSION", CUDA_VERSION);
  settings.arch = (int)settings_number("FAKECUDA_ARCH", 90);
}

const fake_settings *fake_settings_get(void) {
  pthread_once(&once, settings_read);
  return &settings;
}
