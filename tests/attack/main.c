/* attack TENON [MINUTES [SEED]] [--only FAMILY] [--seed S] [--number N] [--slow F]: attacks the program for
 * so many minutes (1). The families share the time. Each finding is a line with the command that repeats it;
 * a table ends the campaign. The exit code is 1 where there is a finding. A seed that is not given is drawn
 * from the clock.
 *
 * --number N repeats one attack of the family of --only, prints what its commands print, and keeps the
 * folder.
 * --slow F allows commands F times as long, for a program with sanitizers. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/attack/known.h"

static const attack_family *const families[] = {&attack_damage,    &attack_hostile, &attack_values,
                                                &attack_inputs,    &attack_limits,  &attack_foreign,
                                                &attack_squatters, &attack_kills};
enum { FAMILIES = sizeof families / sizeof *families };

typedef struct tally {
  double spent_s;
  uint64_t attacks, commands, findings[ATTACK_KINDS];
  bool prepared;
} tally;

static tally tallies[FAMILIES];
static char self[4096], program[4096], folder[256], described[1024];
static double minutes = 1, slow = 1;
static uint64_t seed, number;
static bool seed_is_given, is_single;
static const char *only, *target;
static int family; /* the present one */

/* ---- for the families ---- */

void attack_die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("case failed: attack: ");
  vprintf(format, args);
  printf("\n  family %s, seed %llu, number %llu; the files are in %s\n", families[family]->name,
         (unsigned long long)seed, (unsigned long long)number, folder);
  va_end(args);
  exit(1);
}

const char *attack_target(void) { return target; }

bool attack_is_single(void) { return is_single; }

void attack_describe(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(described, sizeof described, format, args);
  va_end(args);
  for (char *c = described; *c != '\0'; c++)
    if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) *c = '?';
  if (is_single) printf("attack: %s\n", described);
}

void attack_find(attack_kind kind, const char *format, ...) {
  static const char *const kinds[] = {"crash", "hang", "silent wrong result", "foreign code", "other"};
  va_list args;
  va_start(args, format);
  printf("%s: %s: %s: ", kinds[kind], families[family]->name, described);
  vprintf(format, args);
  printf("\n  repeat: %s %s --only %s --seed %llu --number %llu%s\n", self, program, families[family]->name,
         (unsigned long long)seed, (unsigned long long)number, slow > 1 ? " --slow 5" : "");
  fflush(stdout);
  va_end(args);
  tallies[family].findings[kind]++;
}

/* ---- the campaign ---- */

static void attack_once(int which, uint64_t of_seed, uint64_t n) {
  double from = attack_now_s();
  uint64_t commands = attack_commands();
  tally *t = &tallies[which];
  family = which;
  seed = of_seed;
  number = n;
  if (!t->prepared && families[which]->prepare != NULL) families[which]->prepare();
  t->prepared = true;
  described[0] = '\0';
  const known_attack *known = known_attack_find(families[which]->name, seed, number);
  target = known != NULL ? known->target : NULL;
  attack_draw_from(families[which]->name, seed, number);
  families[which]->attack();
  t->attacks++;
  t->spent_s += attack_now_s() - from;
  t->commands += attack_commands() - commands;
}

/* The family that has had the least of its share. */
static int next_family(void) {
  int next = -1;
  for (int i = 0; i < FAMILIES; i++) {
    if (only != NULL && strcmp(only, families[i]->name) != 0) continue;
    if (next < 0 || tallies[i].spent_s / families[i]->share < tallies[next].spent_s / families[next]->share)
      next = i;
  }
  return next;
}

static int find_family(const char *name) {
  for (int i = 0; i < FAMILIES; i++)
    if (strcmp(name, families[i]->name) == 0) return i;
  return -1;
}

/* Attacks that have found a defect once. */
static void attack_known(void) {
  for (const known_attack *k = known_attacks; k->family != NULL; k++) {
    int which = find_family(k->family);
    if (which < 0 || (only != NULL && strcmp(only, k->family) != 0)) continue;
    attack_once(which, k->seed, k->number);
    if (strstr(described, k->words) == NULL)
      attack_find(ATTACK_OTHER, "known attack %s %llu %llu is no longer '%s': draw it anew", k->family,
                  (unsigned long long)k->seed, (unsigned long long)k->number, k->words);
  }
}

static void attack_for_minutes(void) {
  uint64_t of_seed = seed, numbers[FAMILIES] = {0};
  double until = attack_now_s() + 60 * minutes;
  attack_known();
  while (attack_now_s() < until) {
    int next = next_family();
    attack_once(next, of_seed, numbers[next]++);
  }
  seed = of_seed;
}

/* ---- the table ---- */

static uint64_t count_findings(const tally *t) {
  uint64_t n = 0;
  for (int k = 0; k < ATTACK_KINDS; k++) n += t->findings[k];
  return n;
}

static void print_row(const char *name, const tally *t) {
  printf("| %s | %llu | %llu |", name, (unsigned long long)t->attacks, (unsigned long long)t->commands);
  for (int k = 0; k < ATTACK_KINDS; k++) printf(" %llu |", (unsigned long long)t->findings[k]);
  printf(" %.0f |\n", t->spent_s);
}

static uint64_t print_table(void) {
  tally all = {0};
  printf(
      "| family | attacks | commands | crashes | hangs | silent wrong results | foreign code | other | s |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < FAMILIES; i++) {
    const tally *t = &tallies[i];
    if (t->attacks > 0) print_row(families[i]->name, t);
    all.attacks += t->attacks;
    all.commands += t->commands;
    all.spent_s += t->spent_s;
    for (int k = 0; k < ATTACK_KINDS; k++) all.findings[k] += t->findings[k];
  }
  print_row("all", &all);
  return count_findings(&all);
}

/* A case for the count of tests. */
static void print_cases(void) {
  for (int i = 0; i < FAMILIES; i++)
    if (tallies[i].attacks > 0)
      printf("case %s: attack: %s\n", count_findings(&tallies[i]) > 0 ? "failed" : "ok", families[i]->what);
}

/* ---- set-up ---- */

static void read_options(int n, char **words) {
  int position = 0;
  for (int i = 2; i < n; i++) {
    const char *value = i + 1 < n ? words[i + 1] : "";
    bool is_option = strncmp(words[i], "--", 2) == 0;
    if (strcmp(words[i], "--only") == 0) only = value;
    if (strcmp(words[i], "--slow") == 0) slow = atof(value);
    if (strcmp(words[i], "--number") == 0) number = strtoull(value, NULL, 10);
    is_single = is_single || strcmp(words[i], "--number") == 0;
    if (!is_option && position == 0) minutes = atof(words[i]);
    if (strcmp(words[i], "--seed") == 0 || (!is_option && position == 1)) {
      seed = strtoull(is_option ? value : words[i], NULL, 10);
      seed_is_given = true;
    }
    position += !is_option;
    i += is_option;
  }
}

static void draw_seed(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (!seed_is_given)
    seed = ((uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20 ^ (uint64_t)getpid() << 40) % 1000000000;
}

/* No variable of a launcher, and a cache folder of its own. */
static void enter_folder(void) {
  static const char *const launchers[] = {"RANK",         "WORLD_SIZE",  "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                          "SLURM_PROCID", "MASTER_ADDR", "MASTER_PORT"};
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tenon-attack-XXXXXX",
           root != NULL && strlen(root) < 128 ? root : "/tmp");
  /* "../precious" of a hostile text stays in the scratch folder, too */
  if (mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("work", 0755) != 0 || chdir("work") != 0)
    attack_die("%s: %s", folder, strerror(errno));
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) unsetenv(launchers[i]);
  setenv("XDG_CACHE_HOME", folder, 1);
}

int main(int n, char **words) {
  if (n < 2 || realpath(words[1], program) == NULL || realpath("/proc/self/exe", self) == NULL) {
    fprintf(stderr,
            "usage: attack TENON [MINUTES [SEED]] [--only FAMILY] [--seed S] [--number N] [--slow F]\n");
    return 2;
  }
  read_options(n, words);
  draw_seed();
  if (only != NULL && find_family(only) < 0) {
    fprintf(stderr, "attack: no family '%s'\n", only);
    return 2;
  }
  attack_set_program(program, slow);
  enter_folder();
  printf("attack: seed %llu\n", (unsigned long long)seed);
  fflush(stdout);
  if (is_single && only != NULL)
    attack_once(find_family(only), seed, number);
  else
    attack_for_minutes();
  uint64_t findings = print_table();
  print_cases();
  if (is_single) printf("the files are in %s\n", folder);
  if (!is_single && chdir("/") == 0) attack_remove(folder);
  return findings > 0;
}
