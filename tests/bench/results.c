/* tests/bench/results.c: makes one result of the measurements of cpu.sh.
 *
 *   bench_results choice FILE WORK     prints the options of the fastest PyTorch, from a result or from lines
 *   bench_results collect LINES FILE   makes a result from lines
 *   bench_results table FILE           prints a result as a table
 *
 * A process yields one time, the median of its rounds; `ms` is [min, median, max] of these. A `ratio` is the
 * time of the peer divided by Tenon's time of the same round, in which both ran one after the other; it is
 * [min, median, max] of the rounds. The best peer of a work is the peer with the least median time.
 *
 * `least_ms` is the least time of any round of any process; `ratio_of_least` is that of the peer divided by
 * Tenon's. On a shared machine these are the times with the least load. There, medians favour the framework
 * with fewer threads that wait for each other, so a work is marked `busy` if the load of its rounds is well
 * above the number of processors. `load` is the load of the machine before each round, from this benchmark
 * and all other processes.
 *
 * In mode start, a time is that from the start of the process to the end of the first step; for Tenon it is
 * the time to the end of the process, which is slightly longer. */
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

enum { MOST_ROUNDS = 1000 };

static int compare(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static json_t *spread(const double *values, size_t n) {
  double sorted[MOST_ROUNDS];
  memcpy(sorted, values, n * sizeof *values);
  qsort(sorted, n, sizeof *sorted, compare);
  return json_pack("[f, f, f]", sorted[0], sorted[n / 2], sorted[n - 1]);
}

/* ---- lines ---- */

static json_t *read_lines(const char *path) {
  FILE *file = fopen(path, "r");
  json_t *lines = json_array(), *line;
  if (!file) perror(path);
  while (file && (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL))) json_array_append_new(lines, line);
  if (file) fclose(file);
  return lines;
}

/* The median time of a process. */
static double process_ms(const json_t *work, const json_t *line) {
  const json_t *result = json_object_get(line, "result"), *ms = json_object_get(result, "ms");
  bool start = is(work, "mode", "start") && !is(line, "who", "tenon");
  return start ? number(result, "first_step_s") * 1e3
               : json_number_value(json_array_get(ms, json_array_size(ms) / 2));
}

static double least_ms(const json_t *work, const json_t *line) {
  if (is(work, "mode", "start")) return process_ms(work, line);
  return of_spread(json_object_get(line, "result"), "ms", 0);
}

static bool is_of(const json_t *line, const json_t *work, const char *phase) {
  return is(line, "work", text(work, "work")) && is(line, "phase", phase);
}

/* ---- one work ---- */

typedef struct figures {
  double ms[MOST_ROUNDS], first_step_s[MOST_ROUNDS], load[MOST_ROUNDS], least_ms, peak_rss_mib;
  size_t n;
  const json_t *last; /* line */
} figures;

static void gather(const json_t *lines, const json_t *work, const char *who, figures *f) {
  size_t i;
  json_t *line;
  *f = (figures){.n = 0};
  json_array_foreach(lines, i, line) {
    const json_t *result = json_object_get(line, "result");
    if (!is_of(line, work, "round") || !is(line, "who", who) || f->n == MOST_ROUNDS) continue;
    f->ms[f->n] = process_ms(work, line);
    f->first_step_s[f->n] = number(result, "first_step_s");
    double least = least_ms(work, line);
    if (f->n == 0 || least < f->least_ms) f->least_ms = least;
    f->load[f->n] = number(line, "load");
    f->n++;
    if (number(result, "peak_rss_mib") > f->peak_rss_mib) f->peak_rss_mib = number(result, "peak_rss_mib");
    f->last = line;
  }
}

/* The fields of one process, with the times of all processes. */
static json_t *describe(const json_t *work, const figures *f) {
  json_t *entry = json_deep_copy(json_object_get(f->last, "result")), *rounds = json_array();
  for (size_t i = 0; i < f->n; i++) json_array_append_new(rounds, json_real(f->ms[i]));
  json_object_set_new(entry, "ms", spread(f->ms, f->n));
  json_object_set_new(entry, "per_s", json_real(number(work, "batch") / of_spread(entry, "ms", 1) * 1e3));
  json_object_set_new(entry, "rounds", rounds);
  json_object_set_new(entry, "least_ms", json_real(f->least_ms));
  if (f->peak_rss_mib > 0) json_object_set_new(entry, "peak_rss_mib", json_real(f->peak_rss_mib));
  if (json_object_get(entry, "first_step_s")) {
    json_t *first = spread(f->first_step_s, f->n);
    json_object_set(entry, "first_step_s", json_array_get(first, 1));
    json_decref(first);
  }
  if (*text(f->last, "args")) json_object_set(entry, "args", json_object_get(f->last, "args"));
  return entry;
}

static void add_ratio(json_t *entry, const figures *peer, const figures *tenon) {
  double ratios[MOST_ROUNDS];
  size_t n = peer->n < tenon->n ? peer->n : tenon->n;
  for (size_t i = 0; i < n; i++) ratios[i] = peer->ms[i] / tenon->ms[i];
  if (n == 0) return;
  json_object_set_new(entry, "ratio", spread(ratios, n));
  json_object_set_new(entry, "ratio_of_least", json_real(peer->least_ms / tenon->least_ms));
}

static json_t *peers_of(const json_t *lines, const json_t *work, const figures *tenon) {
  static const char *const names[] = {"torch", "onnxruntime", "openvino"};
  json_t *peers = json_array();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    figures f;
    gather(lines, work, names[i], &f);
    if (f.n == 0) continue;
    json_t *entry = describe(work, &f);
    add_ratio(entry, &f, tenon);
    json_array_append_new(peers, entry);
  }
  return peers;
}

static const json_t *best_of(const json_t *peers) {
  const json_t *best = NULL;
  size_t i;
  json_t *peer;
  json_array_foreach(peers, i, peer) {
    if (!best || of_spread(peer, "ms", 1) < of_spread(best, "ms", 1)) best = peer;
  }
  return best;
}

/* A target is a ratio, or a time such as "60ms". */
static bool reaches(const json_t *work, const char *target) {
  char *end = NULL;
  double value = strtod(text(work, target), &end);
  if (end == text(work, target)) return false;
  if (strcmp(end, "ms") == 0) return of_spread(json_object_get(work, "tenon"), "ms", 1) <= value;
  return of_spread(work, "ratio", 1) >= value;
}

static void judge(json_t *work) {
  const json_t *best = best_of(json_object_get(work, "peers")), *tenon = json_object_get(work, "tenon");
  if (best) {
    json_object_set(work, "best", json_object_get(best, "peer"));
    if (json_object_get(best, "ratio")) {
      json_object_set(work, "ratio", json_object_get(best, "ratio"));
      json_object_set(work, "ratio_of_least", json_object_get(best, "ratio_of_least"));
    }
    if (number(best, "peak_rss_mib") > 0 && tenon)
      json_object_set_new(work, "memory",
                          json_real(number(tenon, "peak_rss_mib") / number(best, "peak_rss_mib")));
  }
  if (tenon && strtod(text(work, "must"), NULL) > 0)
    json_object_set_new(work, "reached",
                        json_string(reaches(work, "aim")    ? "aim"
                                    : reaches(work, "must") ? "must"
                                                            : ""));
}

/* The results of the lines of a phase, each with its framework. */
static json_t *all_of(const json_t *lines, const json_t *work, const char *phase) {
  json_t *list = json_array(), *line;
  size_t i;
  json_array_foreach(lines, i, line) {
    if (!is_of(line, work, phase)) continue;
    json_t *one = json_deep_copy(json_object_get(line, "result"));
    json_object_set(one, "who", json_object_get(line, "who"));
    if (*text(line, "args")) json_object_set(one, "args", json_object_get(line, "args"));
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *collect_work(const json_t *lines, const json_t *line, double processors) {
  json_t *work = json_deep_copy(line);
  figures tenon;
  json_object_del(work, "phase");
  gather(lines, work, "tenon", &tenon);
  if (tenon.n > 0) {
    json_object_set_new(work, "tenon", describe(work, &tenon));
    json_object_set_new(work, "load", spread(tenon.load, tenon.n));
    json_object_set_new(work, "busy", json_boolean(of_spread(work, "load", 1) > processors + 1));
  }
  json_object_set_new(work, "peers", peers_of(lines, work, &tenon));
  json_object_set_new(work, "tried", all_of(lines, work, "choice"));
  json_object_set_new(work, "skipped", all_of(lines, work, "skipped"));
  judge(work);
  return work;
}

/* ---- commands ---- */

static void add_facts(json_t *result, const json_t *line) {
  bool after = is(line, "facts", "after");
  const char *key;
  json_t *value;
  json_object_set(result, after ? "load_after" : "load_before", json_object_get(line, "load"));
  json_object_foreach((json_t *)line, key, value) {
    if (!after && strcmp(key, "facts") != 0 && strcmp(key, "load") != 0) json_object_set(result, key, value);
  }
}

static int collect(const char *from, const char *to) {
  json_t *lines = read_lines(from), *result = json_object(), *works = json_array(), *line;
  size_t i;
  json_array_foreach(lines, i, line) {
    if (json_object_get(line, "facts")) add_facts(result, line);
    if (is(line, "phase", "work"))
      json_array_append_new(works, collect_work(lines, line, number(result, "processors")));
  }
  json_object_set_new(result, "works", works);
  int failed = json_dump_file(result, to, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
  if (failed) perror(to);
  json_decref(result);
  json_decref(lines);
  return failed ? 74 : 0;
}

static void keep_faster(const char **args, double *ms, const char *found, double found_ms) {
  if (!*found || (*args && *ms <= found_ms)) return;
  *args = found;
  *ms = found_ms;
}

static int choice(const char *path, const char *name) {
  json_t *works = read_lines(path), *line, *one;
  const char *args = NULL;
  double ms = 0;
  size_t i, k;
  json_array_foreach(works, i, line) {
    if (is(line, "work", name) && is(line, "phase", "choice"))
      keep_faster(&args, &ms, text(line, "args"), process_ms(line, line));
    json_array_foreach(json_object_get(line, "works"), k, one) {
      if (is(one, "work", name))
        keep_faster(&args, &ms, text(json_array_get(json_object_get(one, "peers"), 0), "args"), 0);
    }
  }
  if (args) printf("%s\n", args);
  json_decref(works);
  return args ? 0 : 1;
}

static void print_spread(const json_t *object, const char *key, const char *format) {
  if (json_object_get(object, key))
    printf(format, of_spread(object, key, 0), of_spread(object, key, 1), of_spread(object, key, 2));
  else
    printf(" %26s", "-");
}

static void print_work(const json_t *work) {
  const json_t *tenon = json_object_get(work, "tenon"), *best = best_of(json_object_get(work, "peers")), *one;
  size_t i;
  printf("%-24s", text(work, "work"));
  print_spread(tenon, "ms", " %8.4g %8.4g %8.4g");
  printf("  %-20s", best ? text(best, "peer") : "-");
  print_spread(best, "ms", " %8.4g %8.4g %8.4g");
  print_spread(work, "ratio", " %8.3f %8.3f %8.3f");
  if (json_object_get(work, "ratio_of_least"))
    printf(" %8.3f", number(work, "ratio_of_least"));
  else
    printf(" %8s", "-");
  printf("  %5s %5s %-6s %6.0f %6.0f %6.2f%s\n", text(work, "must"), text(work, "aim"), text(work, "reached"),
         number(tenon, "peak_rss_mib"), number(best, "peak_rss_mib"), of_spread(work, "load", 1),
         json_is_true(json_object_get(work, "busy")) ? " busy" : "");
  json_array_foreach(json_object_get(work, "skipped"), i, one) {
    printf("  skipped: %s: %s\n", text(one, "who"), text(one, "reason"));
  }
}

static int table(const char *path) {
  json_error_t error;
  json_t *result = json_load_file(path, 0, &error), *work;
  size_t i;
  if (!result) {
    fprintf(stderr, "%s: %s\n", path, error.text);
    return 65;
  }
  printf("%s, %.0f threads, %s; load %.2f before, %.2f after; Tenon %s %s\n\n", text(result, "cpu"),
         number(result, "threads"), text(result, "isa"), of_spread(result, "load_before", 0),
         of_spread(result, "load_after", 0), text(result, "tenon"), text(result, "commit"));
  printf("%-24s %26s  %-20s %26s %26s %8s  %5s %5s %-6s %6s %6s %6s\n", "work", "Tenon ms: min median max",
         "best peer", "ms: min median max", "ratio: min median max", "of least", "must", "aim", "", "MiB",
         "peer's", "load");
  json_array_foreach(json_object_get(result, "works"), i, work) { print_work(work); }
  json_decref(result);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "choice") == 0) return choice(argv[2], argv[3]);
  if (argc == 4 && strcmp(argv[1], "collect") == 0) return collect(argv[2], argv[3]);
  if (argc == 3 && strcmp(argv[1], "table") == 0) return table(argv[2]);
  fprintf(stderr, "usage: bench_results choice FILE WORK | collect LINES FILE | table FILE\n");
  return 2;
}
