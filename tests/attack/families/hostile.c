/* tests/attack/families/hostile.c: descriptors of plugins that lie about sizes, offsets, counts, types and
 * texts; the plugin is hostile_plugin.c. */
#include <stdio.h>

#include "tests/attack/attack.h"

static const char plugin_ini[] =
    "[run]\nname = run\nmax_steps = 2\nthreads = 1\noutput =\n"
    "[data]\nsource = random\nshape = [6]\nclasses = 3\nsamples = 24\nbatch = 12\nworkers = 0\n"
    "[model]\ninputs = image: f32[6]\nlayers =\n    hostile(2)\n    hostile_layer(n=3)\n    fc: linear(3)\n"
    "loss = cross_entropy\n"
    "[optimizer]\ntype = sgd\nlr = 0.01\n[schedule]\ntype = hostile_schedule\n"
    "[backend]\nuse = cpu\nautotune = no\n";

static void hostile_prepare(void) {
  attack_write_text("plugin.ini", plugin_ini);
  attack_must((const char *[]){"plan", "plugin.ini", "--plugin", HOSTILE, "--quiet", NULL});
}

static void hostile_run(void) {
  static const char *const commands[][6] = {{"inspect"},
                                            {"inspect", "hostile"},
                                            {"inspect", "layer", "hostile_layer", "--json"},
                                            {"config", "check", "plugin.ini"},
                                            {"plan", "plugin.ini"},
                                            {"plan", "plugin.ini", "--dump-after", "all"},
                                            {"train", "plugin.ini"},
                                            {"find-lr", "plugin.ini", "--steps", "20"}};
  char variable[64];
  snprintf(variable, sizeof variable, "ATTACK_DESCRIPTOR=%llu", (unsigned long long)attack_draw(UINT64_MAX));
  attack_describe("%s", variable);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    attack_command c = {.variables = (const char *const[]){variable, NULL}};
    int n = 0;
    for (; n < 6 && commands[i][n] != NULL; n++) c.words[n] = commands[i][n];
    c.words[n++] = "--plugin";
    c.words[n] = HOSTILE;
    attack_run(&c);
  }
}

const attack_family attack_hostile = {"hostile", "descriptors of plugins that lie do no harm", 2,
                                      hostile_prepare, hostile_run};
