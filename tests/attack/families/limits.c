/* tests/attack/families/limits.c: commands with few descriptors, small files, little memory or a small stack.
 * They end by themselves with a message, and leave no checkpoint that is damaged. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/attack/runs.h"

static struct rlimit limits_value;
static int limits_resource;

static void limits_set(void) { setrlimit((__rlimit_resource_t)limits_resource, &limits_value); }

static const char *const limits_commands[][16] = {
    {"train", "picture.ini", "--output", "l", "--quiet"},
    {"train", "picture.ini", "--output", "l", "--resume", "auto", "--set", "run.epochs=3"},
    {"train", "text.ini", "--output", "l2", "--set", "data.workers=3"},
    {"launch", "-n", "2", "picture.ini", "--output", "l", "--quiet", "--set", "distributed.timeout=4",
     "--set", "data.batch=12"},
    {"launch", "-n", "4", "picture.ini", "--output", "l", "--quiet", "--set", "distributed.timeout=4",
     "--set", "data.batch=12"},
    {"eval", "base/picture/run"},
    {"eval", "base/picture/run", "--classes", "--json"},
    {"predict", "base/picture/run", "--input", "rows.npy", "--output", "l.npy"},
    {"generate", "base/text/run", "--tokens", "12"},
    {"plan", "picture.ini", "--json"},
    {"bench", "picture.ini", "--steps", "2", "--rounds", "2", "--warmup", "1"},
    {"bench", "picture.ini", "--mode", "load", "--steps", "2", "--rounds", "1"},
    {"find-lr", "picture.ini", "--steps", "20"},
    {"runs", "base/picture"},
    {"report", "base/picture/run", "--output", "l.html"},
    {"checkpoint", "verify", "base/picture/run"},
    {"checkpoint", "convert", "base/picture/run", "l.safetensors"},
    {"checkpoint", "diff", "base/picture/run", "base/picture/run"},
    {"compare", "picture.ini", "--steps", "1", "--launches", "1", "--backends", "cpu,onednn"},
    {"config", "show", "picture.ini"},
    {"inspect"},
    {"doctor"},
    {"conformance", "--case", "add/f32/0", "--timeout", "5"},
};
enum { COMMANDS = sizeof limits_commands / sizeof *limits_commands };

static void limits_draw(char words[64]) {
  static const char *const names[] = {"descriptors", "bytes of a file", "bytes of memory",
                                      "bytes of the stack"};
  static const int resources[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_STACK};
  uint64_t which = attack_draw(6);
  which = which > 3 ? 0 : which;
  if (which == 2 && attack_slow() > 1) which = 0; /* a sanitizer reserves more */
  rlim_t value = which == 0   ? (rlim_t)attack_draw_between(4, 80)
                 : which == 1 ? (rlim_t)attack_draw(attack_draw(2) != 0 ? 4096 : 200000)
                 : which == 2 ? (rlim_t)attack_draw_between(40, 600) << 20
                              : (rlim_t)attack_draw_between(256, 4096) << 10;
  limits_resource = resources[which];
  limits_value = (struct rlimit){value, value};
  snprintf(words, 64, "%llu %s", (unsigned long long)value, names[which]);
}

/* The messages themselves fall to a limit of file sizes, as stdout and stderr are files. */
static void limits_one(int i) {
  attack_command c = {.in_child = limits_set,
                      .may_die = limits_resource == RLIMIT_AS || limits_resource == RLIMIT_STACK,
                      .is_mute = limits_resource == RLIMIT_FSIZE};
  memcpy(c.words, limits_commands[i], sizeof limits_commands[i]);
  attack_run(&c);
}

static void limits_verify(const char *run) {
  if (!attack_exists(run)) return;
  const attack_result *r = attack_run(&(attack_command){.words = {"checkpoint", "verify", run}});
  if (r->code != 0 && strstr(r->out, "holds no weights") == NULL && strstr(r->err, "no checkpoint") == NULL)
    attack_find(ATTACK_WRONG, "a damaged checkpoint is left: %.200s%.100s", r->out, r->err);
}

static void limits_run(void) {
  char words[64];
  int first = (int)attack_draw(COMMANDS), second = (int)attack_draw(5);
  attack_remove("l");
  attack_remove("l2");
  limits_draw(words);
  attack_describe("%s: %s, then %s", words, limits_commands[first][0], limits_commands[second][0]);
  limits_one(first);
  limits_one(second);
  limits_verify("l/run");
  limits_verify("l2/run");
}

const attack_family attack_limits = {
    "limits", "few descriptors, small files and little memory give a message", 2, runs_make, limits_run};
