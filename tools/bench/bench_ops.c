/* tools/bench/bench_ops.c: `tenon bench --ops`: each launch as a fraction of the machine's ceilings. */
#include "tools/bench/bench_ops.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/ceilings.h"

static double bench_ops_number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static const char *bench_ops_text(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static double bench_ops_median(const json_t *object) {
  return json_number_value(json_array_get(json_object_get(object, "ms"), 1));
}

static int32_t bench_ops_dtype(const json_t *launch) {
  int32_t dtype = 1;
  while (dtype < TN_DTYPES && strcmp(tn_dtype_name(dtype), bench_ops_text(launch, "dtype")) != 0) dtype++;
  return dtype < TN_DTYPES ? dtype : TN_ANY;
}

/* ---- figures ---- */

static double bench_ops_least_ms(const ceilings *c, const json_t *launch) {
  return least_seconds(c, bench_ops_dtype(launch), bench_ops_number(launch, "flops"),
                       bench_ops_number(launch, "bytes")) *
         1e3;
}

static void bench_ops_add_figures(json_t *launch, const ceilings *c, double step_ms) {
  double ms = bench_ops_median(launch), seconds = ms > 0 ? ms * 1e-3 : 1e-9;
  json_object_set_new(launch, "share_of_step", json_real(step_ms > 0 ? ms / step_ms : 0));
  json_object_set_new(launch, "gflops", json_real(bench_ops_number(launch, "flops") / seconds * 1e-9));
  json_object_set_new(launch, "gb_s", json_real(bench_ops_number(launch, "bytes") / seconds * 1e-9));
  json_object_set_new(launch, "of_limit", json_real(bench_ops_least_ms(c, launch) / (seconds * 1e3)));
}

static int bench_ops_compare_times(const void *x, const void *y) {
  double a = bench_ops_median(*(const json_t *const *)x), b = bench_ops_median(*(const json_t *const *)y);
  return (a < b) - (a > b);
}

/* The same launches, slowest first. */
static json_t *bench_ops_sort(const json_t *launches) {
  size_t n = json_array_size(launches);
  const json_t **order = malloc((n + 1) * sizeof *order);
  json_t *result = json_array();
  for (size_t i = 0; order && i < n; i++) order[i] = json_array_get(launches, i);
  if (order) qsort(order, n, sizeof *order, bench_ops_compare_times);
  for (size_t i = 0; order && i < n; i++) json_array_append(result, (json_t *)order[i]);
  free(order);
  return result;
}

static json_t *bench_ops_kernel_entry(json_t *kernels, const char *name) {
  size_t i;
  json_t *one;
  json_array_foreach(kernels, i, one) {
    if (strcmp(bench_ops_text(one, "kernel"), name) == 0) return one;
  }
  one = json_pack("{s:s, s:i, s:f, s:f}", "kernel", name, "launches", 0, "ms", 0.0, "of_limit", 0.0);
  json_array_append_new(kernels, one);
  return one;
}

/* Totals per kernel, in the order of `launches`; of_limit is weighted by time. */
static json_t *bench_ops_kernels(const json_t *launches) {
  json_t *kernels = json_array(), *launch;
  size_t i;
  json_array_foreach(launches, i, launch) {
    json_t *entry = bench_ops_kernel_entry(kernels, bench_ops_text(launch, "kernel"));
    double before = bench_ops_number(entry, "ms"), ms = bench_ops_median(launch);
    double reached = bench_ops_number(entry, "of_limit") * before + bench_ops_number(launch, "of_limit") * ms;
    json_object_set_new(entry, "launches", json_integer((json_int_t)bench_ops_number(entry, "launches") + 1));
    json_object_set_new(entry, "ms", json_real(before + ms));
    json_object_set_new(entry, "of_limit", json_real(before + ms > 0 ? reached / (before + ms) : 0));
  }
  return kernels;
}

static json_t *bench_ops_ceilings_json(const ceilings *c) {
  json_t *gemm = json_object();
  for (int32_t dtype = 1; dtype < TN_DTYPES; dtype++)
    if (c->gemm[dtype] > 0) json_object_set_new(gemm, tn_dtype_name(dtype), json_real(c->gemm[dtype] * 1e-9));
  return json_pack("{s:o, s:f, s:f, s:f, s:f}", "gemm_gflops", gemm, "multiply_add_gflops",
                   c->multiply_add * 1e-9, "copy_gb_s", c->copy * 1e-9, "cached_copy_gb_s",
                   c->cached_copy * 1e-9, "cache_mib", c->cache_bytes / 1048576.0);
}

/* The lines of [backend.NAME] in a resolved configuration, cut out of `ini`; "": it has no such section. */
static char *bench_ops_section(char *ini, const char *backend) {
  char title[64];
  snprintf(title, sizeof title, "\n[backend.%.*s]\n", (int)strcspn(backend, ", "), backend);
  char *section = strstr(ini, title);
  if (section == NULL) return ini + strlen(ini);
  section += strlen(title);
  char *end = strstr(section, "\n[");
  if (end != NULL) *end = '\0';
  return section;
}

static int bench_ops_measure(tn_context *context, tn_run *run, const json_t *result,
                             const bool wanted[TN_DTYPES], ceilings *found) {
  const char *backend = bench_ops_text(result, "backend");
  int threads = (int)bench_ops_number(result, "threads");
  char *ini = NULL;
  tn_status status = tn_run_resolved_config(run, &ini);
  int code = status == TN_OK
                 ? measure_ceilings(context, backend, bench_ops_section(ini, backend), threads, wanted, found)
                 : cli_report(run, status);
  tn_string_free(run, ini);
  return code;
}

int add_ceilings(tn_context *context, tn_run *run, json_t *result) {
  json_t *launches = json_object_get(result, "launches"), *launch;
  bool wanted[TN_DTYPES] = {[TN_F32] = true};
  ceilings found;
  double least = 0;
  size_t i;
  json_array_foreach(launches, i, launch) {
    int32_t dtype = bench_ops_dtype(launch);
    if (tn_dtype_is_float(dtype)) wanted[dtype] = true;
  }
  int code = bench_ops_measure(context, run, result, wanted, &found);
  if (code != CLI_OK) return code;
  double step_ms = bench_ops_number(result, "launched_ms") + bench_ops_number(result, "between_ms");
  json_array_foreach(launches, i, launch) {
    bench_ops_add_figures(launch, &found, step_ms);
    least += bench_ops_least_ms(&found, launch);
  }
  json_object_set_new(result, "launches", bench_ops_sort(launches));
  json_object_set_new(result, "kernels", bench_ops_kernels(json_object_get(result, "launches")));
  json_object_set_new(result, "ceilings", bench_ops_ceilings_json(&found));
  json_object_set_new(result, "least_ms", json_real(least));
  return CLI_OK;
}

/* ---- table ---- */

static void bench_ops_print_launch(const json_t *l) {
  printf("%-24.24s %-30.30s %-26.26s %-5s %9.4g %6.1f %10.4g %9.4g %7.1f\n", bench_ops_text(l, "name"),
         bench_ops_text(l, "op"), bench_ops_text(l, "kernel"), bench_ops_text(l, "dtype"),
         bench_ops_median(l), bench_ops_number(l, "share_of_step") * 100, bench_ops_number(l, "gflops"),
         bench_ops_number(l, "gb_s"), bench_ops_number(l, "of_limit") * 100);
}

static void bench_ops_print_ceilings(const json_t *c) {
  const char *dtype;
  json_t *rate;
  printf("ceilings  ");
  json_object_foreach(json_object_get(c, "gemm_gflops"), dtype, rate) {
    printf(" matmul %s %.4g GFLOP/s,", dtype, json_number_value(rate));
  }
  if (bench_ops_number(c, "multiply_add_gflops") > 0)
    printf(" multiply-add f32 %.4g GFLOP/s,", bench_ops_number(c, "multiply_add_gflops"));
  printf(" copy %.4g GB/s", bench_ops_number(c, "copy_gb_s"));
  if (bench_ops_number(c, "cached_copy_gb_s") > 0)
    printf(", %.4g GB/s within %.4g MiB of cache", bench_ops_number(c, "cached_copy_gb_s"),
           bench_ops_number(c, "cache_mib"));
  printf("\n");
}

void print_launches(const json_t *result) {
  const json_t *launches = json_object_get(result, "launches"), *kernels = json_object_get(result, "kernels");
  double launched = bench_ops_number(result, "launched_ms"), between = bench_ops_number(result, "between_ms");
  double step = launched + between;
  printf("\n%-24s %-30s %-26s %-5s %9s %6s %10s %9s %7s\n", "name", "op", "kernel", "dtype", "ms", "%",
         "GFLOP/s", "GB/s", "% limit");
  for (size_t i = 0; i < json_array_size(launches); i++) bench_ops_print_launch(json_array_get(launches, i));
  printf("\n%-40s %9s %9s %6s %7s\n", "kernel", "launches", "ms", "%", "% limit");
  for (size_t i = 0; i < json_array_size(kernels); i++) {
    const json_t *k = json_array_get(kernels, i);
    printf("%-40.40s %9.0f %9.4g %6.1f %7.1f\n", bench_ops_text(k, "kernel"), bench_ops_number(k, "launches"),
           bench_ops_number(k, "ms"), step > 0 ? bench_ops_number(k, "ms") / step * 100 : 0,
           bench_ops_number(k, "of_limit") * 100);
  }
  printf("%-40s %9zu %9.4g %6.1f %7.1f\n", "total", json_array_size(launches), launched,
         step > 0 ? launched / step * 100 : 0,
         launched > 0 ? bench_ops_number(result, "least_ms") / launched * 100 : 0);
  printf("%-40s %9s %9.4g %6.1f\n\n", "between launches", "", between, step > 0 ? between / step * 100 : 0);
  bench_ops_print_ceilings(json_object_get(result, "ceilings"));
}
