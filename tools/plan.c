/* tools/plan.c: `tenon plan FILE.ini`: the programs that training would run. */
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"

static void plan_print_op(const json_t *op) {
  const json_t *rejected = json_object_get(op, "rejected");
  printf("%-28.28s %-22.22s %-24.24s %-5s %-10s %12.4g %12.4g\n",
         json_string_value(json_object_get(op, "name")), json_string_value(json_object_get(op, "op")),
         json_string_value(json_object_get(op, "kernel")), json_string_value(json_object_get(op, "dtype")),
         json_string_value(json_object_get(op, "layout")), json_number_value(json_object_get(op, "flops")),
         json_number_value(json_object_get(op, "bytes")));
  for (size_t i = 0; i < json_array_size(rejected); i++) {
    const json_t *one = json_array_get(rejected, i);
    printf("%-28s not %s: %s\n", "", json_string_value(json_object_get(one, "kernel")),
           json_string_value(json_object_get(one, "reason")));
  }
}

static void plan_print_summary(const json_t *json) {
  const json_t *layers = json_object_get(json, "layers");
  printf("%-32s %-16s %-28s %12s %12s\n", "layer", "op", "output", "parameters", "FLOP");
  for (size_t i = 0; i < json_array_size(layers); i++) {
    const json_t *one = json_array_get(layers, i);
    printf("%-32.32s %-16.16s %-28.28s %12lld %12.4g\n", json_string_value(json_object_get(one, "name")),
           json_string_value(json_object_get(one, "op")), json_string_value(json_object_get(one, "output")),
           json_integer_value(json_object_get(one, "parameters")),
           json_number_value(json_object_get(one, "flops")));
  }
  printf("%lld parameters, %.4g FLOP a sample forward\n\n",
         json_integer_value(json_object_get(json, "parameters")),
         json_number_value(json_object_get(json, "flops")));
}

/* Rematerialized values and their cost. */
static void plan_print_rematerialized(const json_t *json) {
  const json_t *list = json_object_get(json, "recomputed");
  if (json_array_size(list) == 0) return;
  printf("rematerialized for memory_limit, %.4g FLOP a step:",
         json_number_value(json_object_get(json, "recomputed_flops")));
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    printf("%s %s (%.2f MiB)", i > 0 ? "," : "", json_string_value(json_object_get(one, "block")),
           json_number_value(json_object_get(one, "bytes")) / 1048576.0);
  }
  printf("\n");
}

static void plan_print_offloaded_value(const json_t *one) {
  printf("%-40.40s %10.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", json_string_value(json_object_get(one, "name")),
         json_number_value(json_object_get(one, "bytes")) / 1048576.0,
         json_number_value(json_object_get(one, "offload_begin_ms")),
         json_number_value(json_object_get(one, "offload_end_ms")),
         json_number_value(json_object_get(one, "fetch_begin_ms")),
         json_number_value(json_object_get(one, "fetch_end_ms")),
         json_number_value(json_object_get(one, "exposed_ms")));
}

static int plan_print_streamed(const json_t *offload) {
  const json_t *s = json_object_get(offload, "streamed");
  double copied = json_number_value(json_object_get(s, "copy_ms")),
         exposed = json_number_value(json_object_get(s, "exposed_ms"));
  int copies = (int)json_integer_value(json_object_get(s, "copies"));
  if (copies > 0)
    printf("streamed for memory_limit: %.2f MiB of weights in %d copies a run; predicted: %.4g ms of copies, "
           "%.4g ms exposed; %.1f %% hidden\n",
           json_number_value(json_object_get(s, "bytes")) / 1048576.0, copies, copied, exposed,
           copied > 0 ? 100 * (1 - exposed / copied) : 100.0);
  return copies;
}

/* Values that wait on the host, and what the limit costs. */
static void plan_print_offloaded(const json_t *json) {
  const json_t *o = json_object_get(json, "offload"), *list = json_object_get(o, "values"), *one;
  double copied = json_number_value(json_object_get(o, "copy_ms")),
         exposed = json_number_value(json_object_get(o, "exposed_ms")),
         step = json_number_value(json_object_get(o, "step_ms")),
         unlimited = json_number_value(json_object_get(o, "unlimited_ms"));
  size_t i;
  if (json_array_size(list) > 0)
    printf("%-40s %10s %9s %9s %9s %9s %9s\n", "offloaded for memory_limit", "MiB", "out ms", "ends", "in ms",
           "ends", "exposed");
  json_array_foreach(list, i, one) plan_print_offloaded_value(one);
  if (i > 0)
    printf("%.2f MiB on the host; predicted: %.4g ms of copies, %.4g ms exposed; %.1f %% hidden\n",
           json_number_value(json_object_get(json, "offloaded_bytes")) / 1048576.0, copied, exposed,
           copied > 0 ? 100 * (1 - exposed / copied) : 100.0);
  int streamed = plan_print_streamed(o);
  if ((i > 0 || streamed > 0 || json_array_size(json_object_get(json, "recomputed")) > 0) && unlimited > 0)
    printf("predicted: a step takes %.4g ms in place of %.4g without memory_limit, %.3f times as long\n",
           step, unlimited, step / unlimited);
}

/* The optimizer on the host: [optimizer] place. */
static void plan_print_placed(const json_t *json) {
  const json_t *o = json_object_get(json, "offload");
  double placed = json_number_value(json_object_get(json, "placed_bytes"));
  if (placed == 0) return;
  printf(
      "the optimizer is on the host with %.2f MiB; predicted: it computes for %.4g ms of a step of %.4g ms, "
      "for %.4g ms of them the device has nothing to do\n",
      placed / 1048576.0, json_number_value(json_object_get(o, "host_ms")),
      json_number_value(json_object_get(o, "step_ms")),
      json_number_value(json_object_get(o, "host_exposed_ms")));
}

/* Ops on the fallback backend, and the bytes that cross the bus for them. */
static void plan_print_fallbacks(const json_t *json) {
  const json_t *list = json_object_get(json, "fallbacks"), *one;
  size_t i;
  long long bytes = 0;
  json_array_foreach(list, i, one) {
    const char *layer = json_string_value(json_object_get(one, "layer"));
    const char *where = json_string_value(json_object_get(one, "where"));
    printf("fallback: %s%s%s%s%s%s runs on %s, %lld bytes over the bus: %s\n",
           json_string_value(json_object_get(one, "op")), *layer ? " of " : "", layer, *where ? " (" : "",
           where, *where ? ")" : "", json_string_value(json_object_get(one, "backend")),
           json_integer_value(json_object_get(one, "bytes")),
           json_string_value(json_object_get(one, "reason")));
    bytes += json_integer_value(json_object_get(one, "bytes"));
  }
  if (i > 0)
    printf("fallbacks cost %lld bytes over the bus and %lld waits a step\n", bytes,
           json_integer_value(json_object_get(json, "cuts")));
}

/* Traffic of the collectives. */
static void plan_print_devices(const json_t *json) {
  long long devices = json_integer_value(json_object_get(json, "devices")),
            n = json_integer_value(json_object_get(json, "collectives"));
  if (devices < 2) return;
  printf("%lld devices; each hands over %.2f MiB an update in %lld collective%s\n", devices,
         json_number_value(json_object_get(json, "collective_bytes")) / 1048576.0, n, n == 1 ? "" : "s");
}

static void plan_print_link(const char *title, const json_t *link) {
  printf("%s%.4g GB/s and %.4g us", title, json_number_value(json_object_get(link, "bytes_per_s")) / 1e9,
         json_number_value(json_object_get(link, "latency_s")) * 1e6);
}

/* A scalar's collective says little. */
enum { PLAN_SMALL_COLLECTIVE = 4096 };

static void plan_print_collectives(const json_t *list) {
  size_t i;
  const json_t *one;
  printf("%-36s %9s %10s %9s %9s %9s %9s\n", "collective", "gradients", "MiB", "ready ms", "begins", "ends",
         "exposed");
  json_array_foreach(list, i, one) {
    double bytes = json_number_value(json_object_get(one, "bytes"));
    if (bytes < PLAN_SMALL_COLLECTIVE) continue;
    printf("%-36.36s %9lld %10.3f %9.3f %9.3f %9.3f %9.3f\n", json_string_value(json_object_get(one, "name")),
           json_integer_value(json_object_get(one, "gradients")), bytes / 1048576.0,
           json_number_value(json_object_get(one, "ready_ms")),
           json_number_value(json_object_get(one, "begin_ms")),
           json_number_value(json_object_get(one, "end_ms")),
           json_number_value(json_object_get(one, "exposed_ms")));
  }
}

/* The schedule of collectives beside the other launches, and what it leaves exposed. */
static void plan_print_overlap(const json_t *json) {
  const json_t *o = json_object_get(json, "overlap");
  if (o == NULL) return;
  double all = json_number_value(json_object_get(o, "communication_ms")),
         exposed = json_number_value(json_object_get(o, "exposed_ms"));
  long long devices = json_integer_value(json_object_get(json, "devices")),
            host = json_integer_value(json_object_get(o, "host_ranks"));
  plan_print_collectives(json_object_get(o, "collectives"));
  plan_print_link("links of ", json_object_get(o, "link"));
  if (host < devices) {
    printf(" between the %lld devices of a host", host);
    plan_print_link(", and of ", json_object_get(o, "host_link"));
    printf(" between hosts");
  }
  printf("\npredicted: %.4g ms of communication, %.4g ms exposed, %.2f %% of a step; %.1f %% hidden\n", all,
         exposed, json_number_value(json_object_get(o, "exposed_percent")),
         all > 0 ? 100 * (1 - exposed / all) : 100.0);
}

/* [distributed] shard. */
static void plan_print_shards(const json_t *json) {
  double all = json_number_value(json_object_get(json, "divided_bytes"));
  if (all == 0) return;
  printf("each device keeps and updates %.2f of %.2f MiB of parameters and optimizer state\n",
         json_number_value(json_object_get(json, "held_bytes")) / 1048576.0, all / 1048576.0);
}

/* Launches that a device enqueues in every step beside captured ones. */
static void plan_print_captures(const json_t *json) {
  const json_t *list = json_object_get(json, "uncaptured"), *one;
  long long parts = json_integer_value(json_object_get(json, "captured_parts"));
  size_t n = json_array_size(list), i;
  if (parts == 0 && n == 0) return;
  printf("%lld captured part%s, %zu launch%s not captured", parts, parts == 1 ? "" : "s", n,
         n == 1 ? "" : "es");
  json_array_foreach(list, i, one)
      printf("%s%s (%s)", i > 0 ? ", " : ": ", json_string_value(json_object_get(one, "op")),
             json_string_value(json_object_get(one, "reason")));
  printf("\n");
}

/* "10.6 GB", with three digits. */
static void plan_print_amount(double bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 999.5 && unit < 4; unit++) bytes /= 1000;
  int digits = bytes >= 99.95 || unit == 0 ? 0 : bytes >= 9.995 ? 1 : 2;
  printf("%.*f %s", digits, bytes, units[unit]);
}

static void plan_print_bytes(const json_t *json) {
  static const char *const keys[] = {"bytes", "fused_bytes"}, *const titles[] = {"bytes a step: ",
                                                                                 ", fused minimum "};
  double samples = json_number_value(json_object_get(json, "samples"));
  for (int i = 0; i < 2; i++) {
    double bytes = json_number_value(json_object_get(json, keys[i]));
    printf("%s", titles[i]);
    plan_print_amount(bytes);
    printf(" (");
    plan_print_amount(bytes / (samples > 0 ? samples : 1));
    printf(" a sample)");
  }
  printf("\n");
}

static void plan_print_policy(const char *policy, const json_t *plan) {
  printf("%s: %lld launches, %.4g ms, %.0f MiB", policy,
         json_integer_value(json_object_get(plan, "launches")),
         json_number_value(json_object_get(plan, "cost_ms")),
         json_number_value(json_object_get(plan, "peak_bytes")) / 1048576.0);
}

/* "bf16: 194 launches, 4.6 ms, 1759 MiB; fp16 with loss scaling: 162, ...", where the other takes less time.
 */
static void plan_print_other_policy(const json_t *json) {
  const json_t *other = json_object_get(json, "other_policy");
  char name[64];
  if (other == NULL || json_number_value(json_object_get(other, "cost_ms")) >=
                           json_number_value(json_object_get(json, "cost_ms")))
    return;
  snprintf(name, sizeof name, "%s%s", json_string_value(json_object_get(other, "policy")),
           json_is_true(json_object_get(other, "scales_loss")) ? " with loss scaling" : "");
  plan_print_policy(json_string_value(json_object_get(json, "precision")), json);
  printf("; ");
  plan_print_policy(name, other);
  printf("\n");
}

/* [phase NAME]: "phase critic, in every step: 18 launches, an estimated 1.2 ms, 310 parameters by adam". */
static void plan_print_turn(const json_t *one) {
  long long every = json_integer_value(json_object_get(one, "every"));
  printf("phase %s, in every ", json_string_value(json_object_get(one, "phase")));
  if (every > 1) printf("%lldth ", every);
  printf("step: %lld launches, an estimated %.4g ms, %lld parameters by %s, arena %.2f MiB\n",
         json_integer_value(json_object_get(one, "launches")),
         json_number_value(json_object_get(one, "cost_ms")),
         json_integer_value(json_object_get(one, "parameters")),
         json_string_value(json_object_get(one, "optimizer")),
         json_number_value(json_object_get(one, "arena_bytes")) / 1048576.0);
}

/* [group.NAME] freeze = N: "epochs 1-3: 18 launches, an estimated 1.2 ms, 310 parameters and 2,000 frozen".
 * The launches above are those of the first line. */
static void plan_print_phases(const json_t *json) {
  const json_t *list = json_object_get(json, "phases"), *one;
  size_t i;
  json_array_foreach(list, i, one) {
    if (json_object_get(one, "phase") != NULL) {
      plan_print_turn(one);
      continue;
    }
    long long first = json_integer_value(json_object_get(one, "first_epoch")),
              last = json_integer_value(json_object_get(one, "last_epoch"));
    if (last >= first)
      printf("epochs %lld-%lld: ", first, last);
    else
      printf("from epoch %lld on: ", first);
    printf("%lld launches a step, an estimated %.4g ms, %lld parameters and %lld frozen, arena %.2f MiB%s\n",
           json_integer_value(json_object_get(one, "launches")),
           json_number_value(json_object_get(one, "cost_ms")),
           json_integer_value(json_object_get(one, "parameters")),
           json_integer_value(json_object_get(one, "frozen")),
           json_number_value(json_object_get(one, "arena_bytes")) / 1048576.0,
           i == 0 ? " (the step above)" : "");
  }
}

/* Launches that run once. */
static void plan_print_constants(const json_t *json) {
  size_t n = json_array_size(json_object_get(json, "constants"));
  if (n > 0)
    printf("%zu launch%s before the first step alone, %.3f MiB kept\n", n, n == 1 ? "" : "es",
           json_number_value(json_object_get(json, "constant_bytes")) / 1048576.0);
}

/* Reorders in a step, and states with another layout than row-major. */
static void plan_print_layouts(const json_t *json) {
  const json_t *ops = json_object_get(json, "ops"), *states = json_object_get(json, "states");
  size_t reorders = 0, with_layout = 0;
  for (size_t i = 0; i < json_array_size(ops); i++) {
    const char *op = json_string_value(json_object_get(json_array_get(ops, i), "op"));
    reorders += op != NULL && strcmp(op, "reorder") == 0;
  }
  for (size_t i = 0; i < json_array_size(states); i++)
    with_layout += json_object_get(json_array_get(states, i), "layout") != NULL;
  printf("reorders: %zu a step; %zu of %zu states have a layout that their kernels prefer\n", reorders,
         with_layout, json_array_size(states));
}

/* "training: random_crop on the host, normalize on the device" */
static void plan_print_transforms(const json_t *json, const char *split, const char *title) {
  const json_t *list = json_object_get(json, "transforms"), *one;
  const char *on = "";
  size_t i, n = 0;
  json_array_foreach(list, i, one) {
    const char *place = json_string_value(json_object_get(one, "on"));
    const char *reason = json_string_value(json_object_get(one, "reason"));
    if (strcmp(json_string_value(json_object_get(one, "data")), split) != 0) continue;
    if (n > 0 && strcmp(on, place) != 0) printf(" on the %s", on);
    printf("%s%s", n > 0 ? ", " : title, json_string_value(json_object_get(one, "name")));
    if (reason != NULL) printf(" (it %s)", reason);
    on = place;
    n++;
  }
  if (n > 0) printf(" on the %s\n", on);
}

static void plan_print(const char *text, const char *summary) {
  json_t *json = cli_load_plain(text), *ops = json_object_get(json, "ops");
  json_t *model = cli_load_plain(summary);
  plan_print_summary(model);
  printf("%-28s %-22s %-24s %-5s %-10s %12s %12s\n", "name", "op", "kernel", "dtype", "layout", "FLOP",
         "bytes");
  for (size_t i = 0; i < json_array_size(ops); i++) plan_print_op(json_array_get(ops, i));
  printf("\n%s: an estimated %.4g ms a step\n", json_string_value(json_object_get(json, "device")),
         json_number_value(json_object_get(json, "cost_ms")));
  printf("%lld launches a step; fallbacks: %zu; plan %s\n",
         json_integer_value(json_object_get(json, "launches")),
         json_array_size(json_object_get(json, "fallbacks")),
         json_string_value(json_object_get(json, "hash")));
  plan_print_phases(json);
  plan_print_other_policy(json);
  plan_print_bytes(json);
  plan_print_constants(json);
  plan_print_layouts(json);
  plan_print_transforms(json, "train", "transforms of training: ");
  plan_print_transforms(json, "valid", "transforms of validation: ");
  printf("a batch has %.3f MiB\n", json_number_value(json_object_get(json, "batch_bytes")) / 1048576.0);
  plan_print_fallbacks(json);
  plan_print_devices(json);
  plan_print_overlap(json);
  plan_print_shards(json);
  plan_print_captures(json);
  printf("memory %.2f MiB, lower bound of any plan %.2f\n",
         json_number_value(json_object_get(json, "peak_bytes")) / 1048576.0,
         json_number_value(json_object_get(json, "bound_bytes")) / 1048576.0);
  cli_print_memory_table(json);
  plan_print_rematerialized(json);
  plan_print_offloaded(json);
  plan_print_placed(json);
  json_decref(json);
  json_decref(model);
}

/* TN_BENCH_TRAIN or TN_BENCH_INFER; -1: another word. */
static int32_t plan_mode(const cli_args *args) {
  if (args->mode == NULL || strcmp(args->mode, "train") == 0) return TN_BENCH_TRAIN;
  return strcmp(args->mode, "infer") == 0 ? TN_BENCH_INFER : -1;
}

static int plan_check(const cli_args *args) {
  if (plan_mode(args) < 0)
    return cli_refuse(args, CLI_USAGE, "--mode %s, expected train or infer", args->mode);
  if (args->batch > 0 && plan_mode(args) != TN_BENCH_INFER)
    return cli_refuse(
        args, CLI_USAGE,
        "--batch is the batch of a prediction, expected beside --mode infer; a training step has "
        "[data] batch");
  return CLI_OK;
}

static int plan_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL, *dump = NULL, *summary = NULL;
  tn_plan_options options = {.struct_size = sizeof options,
                             .dump_after = args->dump_after,
                             .device = args->device_file,
                             .ranks = (int32_t)args->ranks,
                             .mode = plan_mode(args),
                             .batch = args->batch};
  if (plan_check(args) != CLI_OK) return plan_check(args);
  if (args->dump_after && strcmp(args->dump_after, "all") == 0) options.dump_after = "";
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_plan(run, &options, &json, args->dump_after ? &dump : NULL);
  if (status == TN_OK && !args->json && dump == NULL) status = tn_run_summary(run, &summary);
  if (status == TN_OK && args->json)
    printf("%s\n", json);
  else if (status == TN_OK && dump)
    printf("%s", dump);
  else if (status == TN_OK)
    plan_print(json, summary);
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_string_free(run, dump);
  tn_string_free(run, summary);
  tn_run_close(run);
  return code;
}

const cli_command command_plan = {.name = "plan",
                                  .words = "FILE.ini",
                                  .doc = "the programs that training would run",
                                  .min_words = 1,
                                  .max_words = 1,
                                  .options = CLI_SET | CLI_JSON | CLI_PLAN,
                                  .run = plan_run};
