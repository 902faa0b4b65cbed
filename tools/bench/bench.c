/* tools/bench/bench.c: `tenon bench FILE.ini --mode train|infer|load`. */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench_ops.h"

static void bench_print_one_overlap(const char *title, const json_t *o) {
  printf("%-10s %.4g ms of communication a step, %.4g ms exposed: %.2f %% of %.4g ms\n", title,
         json_number_value(json_object_get(o, "communication_ms")),
         json_number_value(json_object_get(o, "exposed_ms")),
         json_number_value(json_object_get(o, "exposed_percent")),
         json_number_value(json_object_get(o, "step_ms")));
}

/* Communication beside computation, of several devices. */
static void bench_print_overlap(const json_t *json) {
  const json_t *o = json_object_get(json, "overlap");
  if (o == NULL) return;
  if (cli_integer(json, "processes") > 1)
    printf("processes  %lld, communicator %s\n", cli_integer(json, "processes"),
           cli_text(json, "communicator"));
  printf("devices    %lld\n", cli_integer(json, "devices"));
  bench_print_one_overlap("predicted", json_object_get(o, "predicted"));
  bench_print_one_overlap("measured", json_object_get(o, "measured"));
  bench_print_one_overlap("worst rank", json_object_get(o, "worst"));
}

/* Kernels that were chosen and then declined: a step may be slower than its plan. */
static void bench_print_declined(const json_t *json) {
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(json, "declined"), i, one)
      printf("declined   %s, %lld times: %s\n", cli_text(one, "kernel"), cli_integer(one, "matches"),
             cli_text(one, "reason"));
}

/* The parts of a step on a device with memory of its own, which overlap. */
static void bench_print_parts(const json_t *json) {
  if (json_object_get(json, "steps_per_launch") != NULL)
    printf("launches   of %lld steps\n", cli_integer(json, "steps_per_launch"));
  if (json_object_get(json, "device_ms") == NULL) return;
  printf("parts      %.4g ms device, %.4g ms host, %.4g ms copy of %.1f MiB\n",
         json_number_value(json_object_get(json, "device_ms")),
         json_number_value(json_object_get(json, "host_ms")),
         json_number_value(json_object_get(json, "copy_ms")),
         json_number_value(json_object_get(json, "copy_bytes")) / 1048576.0);
}

static void bench_print_step(const json_t *json) {
  const json_t *ms = json_object_get(json, "ms");
  printf("%s on %s, %lld threads, batch %lld, %s\n", json_string_value(json_object_get(json, "mode")),
         json_string_value(json_object_get(json, "backend")),
         json_integer_value(json_object_get(json, "threads")),
         json_integer_value(json_object_get(json, "batch")),
         json_string_value(json_object_get(json, "dtype")));
  printf("ms a step  %.4g min, %.4g median, %.4g max\n", json_number_value(json_array_get(ms, 0)),
         json_number_value(json_array_get(ms, 1)), json_number_value(json_array_get(ms, 2)));
  printf("per second %.4g\n", json_number_value(json_object_get(json, "per_s")));
  bench_print_parts(json);
  printf("first step %.3f s\n", json_number_value(json_object_get(json, "first_step_s")));
  printf("memory     %.1f MiB planned, %.1f MiB resident at most\n",
         json_number_value(json_object_get(json, "planned_peak_mib")),
         json_number_value(json_object_get(json, "peak_rss_mib")));
  if (json_object_get(json, "rehearsed"))
    printf("rehearsed  %s, in predicted times\n", json_string_value(json_object_get(json, "rehearsed")));
  bench_print_overlap(json);
  bench_print_declined(json);
  cli_print_memory(json);
  cli_print_memory_table(json);
  if (json_object_get(json, "launches")) print_launches(json);
}

static void bench_print_load(const json_t *json) {
  const json_t *ms = json_object_get(json, "ms");
  printf("loading from %s, %lld workers, batch %lld\n", json_string_value(json_object_get(json, "source")),
         json_integer_value(json_object_get(json, "workers")),
         json_integer_value(json_object_get(json, "batch")));
  printf("ms a batch %.4g min, %.4g median, %.4g max\n", json_number_value(json_array_get(ms, 0)),
         json_number_value(json_array_get(ms, 1)), json_number_value(json_array_get(ms, 2)));
  printf("per second %.4g, %.4g at the start of the first epoch\n",
         json_number_value(json_object_get(json, "per_s")),
         json_number_value(json_object_get(json, "first_per_s")));
}

/* The number of a mode, or -1. */
static int32_t bench_find_mode(const char *name) {
  static const char *const names[] = {"train", "infer", "load"};
  for (int32_t mode = TN_BENCH_TRAIN; mode <= TN_BENCH_LOAD; mode++)
    if (name == NULL || strcmp(name, names[mode]) == 0) return mode;
  return -1;
}

static void bench_print_json(const json_t *json) {
  char *text = json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
  printf("%s\n", text ? text : "");
  free(text);
}

/* Prints a result; one with launches gets the ceilings first. */
static int bench_print(tn_context *context, tn_run *run, const cli_args *args, const char *text) {
  json_t *json = cli_load_plain(text);
  int code = json_object_get(json, "launches") ? add_ceilings(context, run, json) : CLI_OK;
  if (code == CLI_OK)
    (args->json                         ? bench_print_json
     : json_object_get(json, "workers") ? bench_print_load
                                        : bench_print_step)(json);
  if (code == CLI_OK && !args->json && cli_text(json, "trace"))
    printf("trace      %s\n", cli_text(json, "trace"));
  json_decref(json);
  return code;
}

static int bench_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  int32_t mode = bench_find_mode(args->mode);
  if (mode < 0) return cli_refuse(args, CLI_USAGE, "--mode %s, expected train, infer or load", args->mode);
  tn_bench_options options = {.struct_size = sizeof options,
                              .mode = mode,
                              .batch = args->batch,
                              .steps = (int32_t)args->steps,
                              .rounds = (int32_t)args->rounds,
                              .warmup = (int32_t)args->warmup,
                              .launches = args->ops,
                              .ranks = (int32_t)args->ranks,
                              .device = args->device_file};
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_bench(run, &options, &json);
  if (status != TN_OK)
    code = cli_fail(args, run, status);
  else if (json != NULL) /* one of several processes prints the result */
    code = bench_print(context, run, args, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_bench = {.name = "bench",
                                   .words = "FILE.ini",
                                   .doc = "time per step on random data, or per batch of the loader",
                                   .min_words = 1,
                                   .max_words = 1,
                                   .options = CLI_SET | CLI_JSON | CLI_MODE | CLI_BATCH | CLI_STEPS |
                                              CLI_OPS | CLI_TRACE | CLI_REHEARSE,
                                   .run = bench_run};
