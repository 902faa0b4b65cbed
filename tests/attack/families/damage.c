/* tests/attack/families/damage.c: one file or folder of a run folder is damaged, then every command reads the
 * run folder. A command that ends with 0 gives the answer of the undamaged folder, unless the damaged file is
 * what it shows, or it names the damage in a warning. Files outside of the run folder, which links point to,
 * keep their bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/runs.h"

enum { MOST_SHOWN = 8, MOST_MADE = 2 };

/* A command, and its answer, which is compared: the files in `made`, or the output if it makes no file. */
typedef struct reader {
  const char *name;
  int of; /* RUNS_PICTURE, RUNS_TEXT or both */
  const char *words[16];
  const char *shown[MOST_SHOWN]; /* files whose contents are the answer: nothing vouches for them */
  const char *made[MOST_MADE];
  bool is_silent; /* the answer has times or paths: it is not compared */
} reader;

#define CONFIG          "config.ini"
#define LAST            "x/run/checkpoints/last/"
#define MODEL(name)     "checkpoints/" name "/model.safetensors"
#define OPTIMIZER(name) "checkpoints/" name "/optimizer.safetensors"

static const reader readers[] = {
    {"runs",
     3,
     {"runs", "x", "--json"},
     {"history.jsonl", "metrics.jsonl", CONFIG, "plan.json", "resolved.ini"}},
    {"checkpoint ls",
     3,
     {"checkpoint", "ls", "x/run"},
     {"metrics.jsonl", MODEL("best"), MODEL("last"), OPTIMIZER("best"), OPTIMIZER("last")}},
    {"checkpoint verify", 3, {"checkpoint", "verify", "x/run"}, {NULL}},
    {"checkpoint show", 3, {"checkpoint", "show", "x/run", "--stats"}, {NULL}},
    {"checkpoint show last", 3, {"checkpoint", "show", "x/run/checkpoints/last"}, {NULL}},
    {"checkpoint diff", 1, {"checkpoint", "diff", "x/run", "base/picture/run", "--optimizer"}, {NULL}},
    {"checkpoint convert",
     3,
     {"checkpoint", "convert", "x/run", "made.safetensors"},
     {NULL},
     {"made.safetensors"}},
    {"eval", 3, {"eval", "x/run", "--json"}, {CONFIG}},
    {"eval --classes", 1, {"eval", "x/run", "--classes", "--json"}, {CONFIG}},
    {"predict", 1, {"predict", "x/run", "--input", "rows.npy", "--json"}, {CONFIG}},
    {"predict --output",
     1,
     {"predict", "x/run", "--input", "rows.npy", "--output", "made.npy"},
     {CONFIG},
     {"made.npy"}},
    {"generate", 2, {"generate", "x/run", "--tokens", "12", "--seed", "1"}, {CONFIG}},
    {"plan", 3, {"plan", "x/run/config.ini"}, {CONFIG}},
    {"config show", 3, {"config", "show", "x/run/config.ini", "--all"}, {CONFIG}},
    {"compare",
     1,
     {"compare", "x/run/config.ini", "--weights", "x/run", "--steps", "1", "--launches", "1", "--backends",
      "cpu,onednn"},
     {CONFIG}},
    {"find-lr",
     1,
     {"find-lr", "x/run/config.ini", "--weights", "x/run", "--steps", "20", "--json"},
     {CONFIG}},
    {"train --weights",
     1,
     {"train", "picture.ini", "--weights", "x/run", "--output", "y", "--set", "run.epochs=1"},
     {NULL},
     {"y/run/checkpoints/last/model.safetensors"}},
    {"report", 3, {"report", "x/run"}, {NULL}, {NULL}, .is_silent = true},
    {"train --resume",
     3,
     {"train", "x/run/config.ini", "--output", "x", "--resume", "auto", "--set", "run.epochs=3"},
     {CONFIG},
     {LAST "model.safetensors", LAST "optimizer.safetensors"}},
    {"runs behind it", 3, {"runs", "x"}, {NULL}, {NULL}, .is_silent = true},
};
enum { READERS = sizeof readers / sizeof *readers };

static const char damage_keep[] = "a file that is not the run's\n";
static bool damage_is_removal; /* of a whole checkpoint: the rest is a run folder, too, with the answers of
                                  the other */
static attack_paths damage_paths[2];
static attack_bytes expected[2][READERS][MOST_MADE];

/* ---- the undamaged answers ---- */

static const char *damage_base(int kind) { return kind == 0 ? "base/picture/run" : "base/text/run"; }

static void damage_copy(int kind) {
  attack_remove("x");
  attack_remove("y");
  attack_copy(damage_base(kind), "x/run");
}

static void damage_forget_made(const reader *r) {
  for (int m = 0; m < MOST_MADE && r->made[m] != NULL; m++)
    if (strncmp(r->made[m], "x/", 2) != 0) unlink(r->made[m]);
}

/* Whether the text begins with a minute, as "2026-11-28 04:05". */
static bool damage_is_minute(const char *text) {
  static const char form[] = "0000-00-00 00:00";
  for (int i = 0; form[i] != '\0'; i++)
    if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
  return true;
}

/* The times at which the folder was made, and a file of it was written, differ from copy to copy. */
static void damage_blank_times(char *text) {
  static const char started[] = "\"started\": ";
  for (char *at = text; (at = strstr(at, started)) != NULL;)
    for (at += strlen(started); *at >= '0' && *at <= '9'; at++) *at = '0';
  for (char *at = text; *at != '\0'; at++)
    if (damage_is_minute(at)) memset(at, '0', 16);
}

static attack_bytes damage_answer(const reader *r, const attack_result *result, int m) {
  if (r->made[m] != NULL) return attack_read(r->made[m]);
  attack_bytes answer = {malloc(result->n_out + 1), result->n_out};
  if (answer.v == NULL) attack_die("out of memory");
  memcpy(answer.v, result->out, result->n_out + 1);
  damage_blank_times(answer.v);
  return answer;
}

static int damage_answers(const reader *r) { return r->is_silent ? 0 : r->made[1] != NULL ? 2 : 1; }

static void damage_prepare(void) {
  runs_make();
  attack_write_text("keep", damage_keep);
  for (int kind = 0; kind < 2; kind++) {
    damage_paths[kind] = attack_list(damage_base(kind));
    damage_copy(kind);
    for (int i = 0; i < READERS; i++) {
      if ((readers[i].of & 1 << kind) == 0) continue;
      damage_forget_made(&readers[i]);
      const attack_result *result = attack_must(readers[i].words);
      for (int m = 0; m < damage_answers(&readers[i]); m++)
        expected[kind][i][m] = damage_answer(&readers[i], result, m);
    }
  }
}

/* ---- damage ---- */

static const char *damage_bytes(const char *path) {
  static char words[128];
  attack_bytes bytes = attack_read(path);
  size_t head = strstr(path, "safetensors") != NULL && attack_draw(2) != 0 ? 900 : 0;
  attack_damage_bytes(&bytes, head, words, sizeof words);
  attack_write(path, bytes.v, bytes.n);
  free(bytes.v);
  return words;
}

static bool damage_is_folder(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- judgement ---- */

static bool damage_is_shown(const reader *r, const char *damaged) {
  for (int i = 0; i < MOST_SHOWN && r->shown[i] != NULL; i++)
    if (strcmp(damaged, r->shown[i]) == 0) return true;
  return false;
}

/* A warning has the name of the file, or of the checkpoint that it is of; a table has its path, with the
 * reason. */
static bool damage_is_named(const attack_result *result, const char *damaged) {
  char checkpoint[64] = "";
  const char *name = strrchr(damaged, '/'), *warning = strstr(result->err, "warning");
  sscanf(damaged, "checkpoints/%63[^/]", checkpoint);
  if (strstr(result->out, damaged) != NULL || strstr(result->out, "cannot be used") != NULL ||
      strstr(result->out, "cannot be read") != NULL)
    return true;
  return warning != NULL && (strstr(warning, name != NULL ? name + 1 : damaged) != NULL ||
                             (checkpoint[0] != '\0' && strstr(warning, checkpoint) != NULL));
}

static bool damage_same_answers(int kind, int i, const attack_result *result) {
  bool same = true;
  for (int m = 0; m < damage_answers(&readers[i]); m++) {
    attack_bytes answer = damage_answer(&readers[i], result, m);
    same =
        same && answer.n == expected[kind][i][m].n && memcmp(answer.v, expected[kind][i][m].v, answer.n) == 0;
    free(answer.v);
  }
  return same;
}

static void damage_read(int kind, int i, const char *damaged) {
  const reader *r = &readers[i];
  attack_command command = {.limit_s = 0};
  memcpy(command.words, r->words, sizeof r->words);
  damage_forget_made(r);
  const attack_result *result = attack_run(&command);
  if (result->code != 0 || damage_is_removal || damage_is_shown(r, damaged) ||
      damage_same_answers(kind, i, result))
    return;
  if (damage_is_named(result, damaged)) return;
  attack_find(ATTACK_WRONG, "%s: exit code 0 with another answer, and no warning about the file", r->name);
}

/* verify finds each damage of weights and states, so it ends with 0 for none. state.json may have other
 * blanks. */
static void damage_verify(const char *damaged) {
  if (strstr(damaged, ".safetensors") == NULL) return;
  const attack_result *result = attack_run(&(attack_command){.words = {"checkpoint", "verify", "x/run"}});
  if (result->code == 0)
    attack_find(ATTACK_WRONG, "checkpoint verify: exit code 0 beside a damaged checkpoint");
}

/* Links of the attack point to these; base is compared in the next attack, by its answers. */
static void damage_look_outside(void) {
  attack_bytes keep = attack_read("keep");
  if (strcmp(keep.v, damage_keep) != 0)
    attack_find(ATTACK_OTHER, "a file outside of the run folder has changed");
  free(keep.v);
  attack_write_text("keep", damage_keep);
}

static const char *const damage_names[] = {"picture", "text"};

/* The path of a file or folder in a run folder. That of a known attack does not depend on what else is there.
 */
static const char *damage_choose(int *kind) {
  *kind = (int)attack_draw(2);
  const char *drawn = damage_paths[*kind].v[attack_draw((uint64_t)damage_paths[*kind].n)],
             *target = attack_target();
  if (target == NULL) return drawn;
  const char *path = strchr(target, '/') + 1;
  *kind = strncmp(target, damage_names[1], strlen(damage_names[1])) == 0;
  return path;
}

static void damage_run(void) {
  int kind;
  const char *damaged = damage_choose(&kind);
  char path[4096], other[4096];
  damage_copy(kind);
  snprintf(path, sizeof path, "x/run/%s", damaged);
  snprintf(other, sizeof other, "%s/%s", damage_base(kind), damaged);
  bool replaced = damage_is_folder(path) || attack_draw(4) == 0;
  bool is_checkpoint = replaced && damage_is_folder(path);
  const char *words = replaced ? attack_replace(path) : damage_bytes(path);
  /* an empty "checkpoints" is that of a run before its first checkpoint */
  damage_is_removal = is_checkpoint && (!attack_exists(path) || strcmp(damaged, "checkpoints") == 0);
  attack_describe("%s/%s: %s", damage_names[kind], damaged, words);
  if (!replaced && attack_same_files(path, other)) return;
  damage_verify(damaged);
  for (int i = 0; i < READERS; i++)
    if ((readers[i].of & 1 << kind) != 0) damage_read(kind, i, damaged);
  damage_look_outside();
}

const attack_family attack_damage = {"damage", "a damaged run folder gives no other answer without a word", 4,
                                     damage_prepare, damage_run};
