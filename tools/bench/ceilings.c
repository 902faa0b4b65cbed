/* tools/bench/ceilings.c: measures large matrix products and copies through the library, and the host's
 * processors. */
#include "tools/bench/ceilings.h"

#include <string.h>
#include <time.h>

#include "tools/bench/peak.h"
#include "tools/cli/clock.h"

/* The largest gives the best rate; slow devices stop at a smaller one. */
static const int64_t SIDES[] = {512, 1024, 2048};
enum { REPEATS = 4, COPY_MIB = 256 };
static const double ENOUGH_S = 0.1; /* for one product */

/* ---- matmul ---- */

typedef struct ceilings_product {
  tn_device *device;
  tn_tensor *a, *b, *c;
} ceilings_product;

static bool ceilings_open_product(ceilings_product *p, int32_t dtype, int64_t side) {
  tn_type type = {dtype, 2, {side, side}};
  return tn_tensor_new(p->device, &type, &p->a) == TN_OK && tn_tensor_new(p->device, &type, &p->b) == TN_OK &&
         tn_tensor_new(p->device, &type, &p->c) == TN_OK && tn_tensor_fill(p->a, 0.5) == TN_OK &&
         tn_tensor_fill(p->b, 0.25) == TN_OK;
}

static void ceilings_close_product(ceilings_product *p) {
  tn_tensor_delete(p->a);
  tn_tensor_delete(p->b);
  tn_tensor_delete(p->c);
}

static bool ceilings_multiply(ceilings_product *p) {
  return tn_apply(p->device, "matmul", (tn_tensor *[]){p->a, p->b}, 2, &p->c, 1) == TN_OK &&
         tn_device_wait(p->device) == TN_OK;
}

/* Seconds of the fastest product; the first one compiles. 0: the device cannot compute it. */
static double ceilings_time_product(tn_device *device, int32_t dtype, int64_t side) {
  ceilings_product p = {.device = device};
  double best = 0, taken = 0;
  bool works = ceilings_open_product(&p, dtype, side) && ceilings_multiply(&p);
  for (int i = 0; works && i < REPEATS && taken < ENOUGH_S; i++) {
    double start = cli_clock_s();
    works = ceilings_multiply(&p);
    taken = cli_clock_s() - start;
    if (best <= 0 || taken < best) best = taken;
  }
  ceilings_close_product(&p);
  return works ? best : 0;
}

/* FLOP/s; 0: the device has no matmul in this dtype, or too little memory. */
static double ceilings_measure_gemm(tn_device *device, int32_t dtype) {
  double best = 0;
  for (size_t i = 0; i < sizeof SIDES / sizeof *SIDES; i++) {
    double side = (double)SIDES[i], seconds = ceilings_time_product(device, dtype, SIDES[i]);
    if (seconds <= 0) break;
    double rate = 2 * side * side * side / seconds;
    if (rate > best) best = rate;
    if (seconds * 8 > ENOUGH_S) break; /* an estimate for the next size */
  }
  return best;
}

/* ---- copy on a device of its own memory ---- */

static bool ceilings_copy(tn_tensor *to, tn_tensor *from) {
  return tn_tensor_copy(to, from) == TN_OK && tn_device_wait(tn_tensor_device(to)) == TN_OK;
}

static double ceilings_measure_copy(tn_device *device) {
  tn_type type = {TN_U8, 1, {(int64_t)COPY_MIB << 20}};
  tn_tensor *from = NULL, *to = NULL;
  double best = 0;
  bool works = tn_tensor_new(device, &type, &from) == TN_OK && tn_tensor_new(device, &type, &to) == TN_OK;
  for (int i = 0; works && i < REPEATS; i++) {
    double start = cli_clock_s();
    works = ceilings_copy(to, from);
    double taken = cli_clock_s() - start;
    if (best <= 0 || taken < best) best = taken;
  }
  tn_tensor_delete(from);
  tn_tensor_delete(to);
  return works && best > 0 ? 2.0 * (double)tn_type_bytes(&type) / best : 0;
}

/* ---- all ---- */

static void ceilings_measure_host(int threads, ceilings *found) {
  found->multiply_add = peak_flops(threads);
  found->copy = peak_copy(threads);
  found->cached_copy = peak_cached_copy(threads);
  found->cache_bytes = peak_cache_bytes(threads);
}

int measure_ceilings(tn_context *context, const char *backend, const char *options, int threads,
                     const bool wanted[TN_DTYPES], ceilings *found) {
  tn_device *device = NULL;
  tn_device_info info = {.struct_size = sizeof info};
  memset(found, 0, sizeof *found);
  tn_status status = tn_device_open(context, backend, 0, options, &device);
  if (status == TN_OK) status = tn_device_describe(device, &info);
  if (status != TN_OK) {
    tn_device_close(device);
    return cli_report(context, status);
  }
  for (int32_t dtype = 0; dtype < TN_DTYPES; dtype++)
    if (wanted[dtype]) found->gemm[dtype] = ceilings_measure_gemm(device, dtype);
  if (info.host_addressable)
    ceilings_measure_host(threads, found);
  else
    found->copy = ceilings_measure_copy(device);
  tn_device_close(device);
  return CLI_OK;
}

double least_seconds(const ceilings *c, int32_t dtype, double flops, double bytes) {
  double rate = c->gemm[dtype], f32 = c->multiply_add > c->gemm[TN_F32] ? c->multiply_add : c->gemm[TN_F32];
  if (f32 > rate) rate = f32;
  double copy = c->cached_copy > 0 && bytes <= c->cache_bytes ? c->cached_copy : c->copy;
  double computing = rate > 0 ? flops / rate : 0, moving = copy > 0 ? bytes / copy : 0;
  return computing > moving ? computing : moving;
}
