/* tools/bench/ceilings.c: a large matrix product and a large copy through the library, and the processor
 * beside. */
#include "tools/bench/ceilings.h"

#include <string.h>
#include <time.h>

#include "tools/bench/peak.h"

/* Large enough for a kernel to be at its best; the smaller one for devices that need seconds for the larger.
 */
static const int64_t SIDES[] = {512, 1024, 2048};
enum { REPEATS = 4, COPY_MIB = 256 };
static const double ENOUGH_S = 0.1; /* for one product */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- matmul ---- */

typedef struct product {
  tn_device *device;
  tn_tensor *a, *b, *c;
} product;

static bool product_open(product *p, int32_t dtype, int64_t side) {
  tn_type type = {dtype, 2, {side, side}};
  return tn_tensor_new(p->device, &type, &p->a) == TN_OK && tn_tensor_new(p->device, &type, &p->b) == TN_OK &&
         tn_tensor_new(p->device, &type, &p->c) == TN_OK && tn_tensor_fill(p->a, 0.5) == TN_OK &&
         tn_tensor_fill(p->b, 0.25) == TN_OK;
}

static void product_close(product *p) {
  tn_tensor_delete(p->a);
  tn_tensor_delete(p->b);
  tn_tensor_delete(p->c);
}

static bool multiply(product *p) {
  return tn_apply(p->device, "matmul", (tn_tensor *[]){p->a, p->b}, 2, &p->c, 1) == TN_OK &&
         tn_device_wait(p->device) == TN_OK;
}

/* Seconds of the fastest of some products; the first one compiles. 0: the device cannot do it. */
static double time_product(tn_device *device, int32_t dtype, int64_t side) {
  product p = {.device = device};
  double best = 0, taken = 0;
  bool works = product_open(&p, dtype, side) && multiply(&p);
  for (int i = 0; works && i < REPEATS && taken < ENOUGH_S; i++) {
    double start = now();
    works = multiply(&p);
    taken = now() - start;
    if (best <= 0 || taken < best) best = taken;
  }
  product_close(&p);
  return works ? best : 0;
}

/* 0 where the device has no matmul in this dtype, or no room for one. */
static double measure_gemm(tn_device *device, int32_t dtype) {
  double best = 0;
  for (size_t i = 0; i < sizeof SIDES / sizeof *SIDES; i++) {
    double side = (double)SIDES[i], seconds = time_product(device, dtype, SIDES[i]);
    if (seconds <= 0) break;
    double rate = 2 * side * side * side / seconds;
    if (rate > best) best = rate;
    if (seconds * 8 > ENOUGH_S) break; /* what the next size would take */
  }
  return best;
}

/* ---- copy on a device of its own memory ---- */

static bool copy(tn_tensor *to, tn_tensor *from) {
  return tn_tensor_copy(to, from) == TN_OK && tn_device_wait(tn_tensor_device(to)) == TN_OK;
}

static double measure_copy(tn_device *device) {
  tn_type type = {TN_U8, 1, {(int64_t)COPY_MIB << 20}};
  tn_tensor *from = NULL, *to = NULL;
  double best = 0;
  bool works = tn_tensor_new(device, &type, &from) == TN_OK && tn_tensor_new(device, &type, &to) == TN_OK;
  for (int i = 0; works && i < REPEATS; i++) {
    double start = now();
    works = copy(to, from);
    double taken = now() - start;
    if (best <= 0 || taken < best) best = taken;
  }
  tn_tensor_delete(from);
  tn_tensor_delete(to);
  return works && best > 0 ? 2.0 * (double)tn_type_bytes(&type) / best : 0;
}

/* ---- all ---- */

/* With as many threads as were measured; a device whose backend knows no such option has them as it is. */
static tn_status open_device(tn_context *context, const char *backend, int threads, tn_device **device) {
  char options[32];
  snprintf(options, sizeof options, "threads = %d", threads);
  tn_status status = tn_device_open(context, backend, 0, options, device);
  return status == TN_EINVAL ? tn_device_open(context, backend, 0, NULL, device) : status;
}

static void measure_host(int threads, ceilings *found) {
  found->multiply_add = peak_flops(threads);
  found->copy = peak_copy(threads);
  found->cached_copy = peak_cached_copy(threads);
  found->cache_bytes = peak_cache_bytes(threads);
}

int measure_ceilings(tn_context *context, const char *backend, int threads, const bool wanted[TN_DTYPES],
                     ceilings *found) {
  tn_device *device = NULL;
  tn_device_info info = {.struct_size = sizeof info};
  memset(found, 0, sizeof *found);
  tn_status status = open_device(context, backend, threads, &device);
  if (status == TN_OK) status = tn_device_describe(device, &info);
  if (status != TN_OK) {
    tn_device_close(device);
    return cli_fail(context, status);
  }
  for (int32_t dtype = 0; dtype < TN_DTYPES; dtype++)
    if (wanted[dtype]) found->gemm[dtype] = measure_gemm(device, dtype);
  if (info.host_addressable)
    measure_host(threads, found);
  else
    found->copy = measure_copy(device);
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
