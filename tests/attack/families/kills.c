/* tests/attack/families/kills.c: SIGKILL at random moments; a run that goes on with --resume auto ends with
 * the bits of one that was never killed. `tools/dev faults` kills more often, and more kinds of processes. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/attack/runs.h"

enum { MOST_KILLS = 6, SETTINGS = 6 };

static const char *const kills_settings[SETTINGS] = {"optimizer.ema=0.9",     "optimizer.accumulate=2",
                                                     "precision.policy=bf16", "optimizer.clip=0.5",
                                                     "data.last=pad",         "schedule.type=plateau"};
static double kills_whole_s[SETTINGS]; /* of an undisturbed training; 0: not made yet */

static attack_command kills_command(int i, const char *output) {
  return (attack_command){.words = {"train", "picture.ini", "--output", output, "--resume", "auto", "--quiet",
                                    "--set", kills_settings[i], "--set", "run.epochs=6", "--set",
                                    "run.save_every=1"}};
}

static void kills_train_whole(int i, const char *output) {
  double from = attack_now_s();
  if (kills_whole_s[i] > 0) return;
  attack_command c = kills_command(i, output);
  attack_must(c.words);
  kills_whole_s[i] = attack_now_s() - from;
}

static void kills_compare(const char *whole, const char *killed) {
  static const char *const files[] = {"last/model.safetensors", "last/optimizer.safetensors",
                                      "best/model.safetensors"};
  char a[128], b[128];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(a, sizeof a, "%s/run/checkpoints/%s", whole, files[i]);
    snprintf(b, sizeof b, "%s/run/checkpoints/%s", killed, files[i]);
    if (!attack_same_files(a, b))
      attack_find(ATTACK_WRONG, "%s has other bits than that of a run that was not killed", files[i]);
  }
}

static void kills_run(void) {
  int i = (int)attack_draw(SETTINGS), n = attack_draw_between(1, MOST_KILLS);
  char whole[32];
  snprintf(whole, sizeof whole, "whole%d", i);
  kills_train_whole(i, whole);
  attack_remove("killed");
  attack_describe("%s, %d kills", kills_settings[i], n);
  attack_command c = kills_command(i, "killed");
  for (int k = 0; k < n; k++) {
    pid_t pid = attack_start(&c);
    /* any moment will do: the kill may come before the program, or behind its end */
    attack_sleep_s(kills_whole_s[i] * (double)attack_draw(1000) / 1000);
    kill(pid, SIGKILL);
    attack_reap(pid);
  }
  const attack_result *r = attack_run(&c);
  if (r->code != 0)
    attack_find(ATTACK_OTHER, "train --resume auto: exit code %d: %.200s", r->code, r->err);
  else
    kills_compare(whole, "killed");
}

const attack_family attack_kills = {"kills", "a run that was killed goes on with the same bits", 1, runs_make,
                                    kills_run};
