/* tools/bench.c: `tenon bench FILE.ini --mode train|infer`. */
#include <string.h>

#include <jansson.h>

#include "cli.h"

static void print_result(const char *text) {
  json_t *json = json_loads(text, 0, NULL), *ms = json_object_get(json, "ms");
  printf("%s on %s, %lld threads, batch %lld, %s\n", json_string_value(json_object_get(json, "mode")),
         json_string_value(json_object_get(json, "backend")),
         json_integer_value(json_object_get(json, "threads")),
         json_integer_value(json_object_get(json, "batch")),
         json_string_value(json_object_get(json, "dtype")));
  printf("ms a step  %.4g min, %.4g median, %.4g max\n", json_number_value(json_array_get(ms, 0)),
         json_number_value(json_array_get(ms, 1)), json_number_value(json_array_get(ms, 2)));
  printf("per second %.4g\n", json_number_value(json_object_get(json, "per_s")));
  printf("first step %.3f s\n", json_number_value(json_object_get(json, "first_step_s")));
  printf("memory     %.1f MiB planned, %.1f MiB resident at most\n",
         json_number_value(json_object_get(json, "planned_peak_mib")),
         json_number_value(json_object_get(json, "peak_rss_mib")));
  json_decref(json);
}

static int run_bench(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  bool infer = args->mode && strcmp(args->mode, "infer") == 0;
  if (args->mode && !infer && strcmp(args->mode, "train") != 0) {
    fprintf(stderr, "tenon bench: --mode %s, expected train or infer\n", args->mode);
    return CLI_USAGE;
  }
  tn_bench_options options = {.struct_size = sizeof options,
                              .mode = infer ? TN_BENCH_INFER : TN_BENCH_TRAIN,
                              .batch = args->batch,
                              .steps = (int32_t)args->steps,
                              .rounds = (int32_t)args->rounds,
                              .warmup = (int32_t)args->warmup};
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_bench(run, &options, &json);
  if (json && args->json)
    printf("%s\n", json);
  else if (json)
    print_result(json);
  code = status == TN_OK ? CLI_OK : cli_fail(run, status);
  tn_run_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_bench = {.name = "bench",
                                   .words = "FILE.ini",
                                   .doc = "time per step on random data",
                                   .min_words = 1,
                                   .max_words = 1,
                                   .options = CLI_SET | CLI_JSON | CLI_MODE | CLI_BATCH | CLI_STEPS,
                                   .run = run_bench};
