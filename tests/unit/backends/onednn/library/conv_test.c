/* The descriptions of layouts agree with tenon/plugin/storage.h in the library's own reorders; lists of
 * primitives fail without leaks; products of matrices are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/onednn/library/matmul.h"
#include "tenon/plugin/storage.h"

/* ---- a host ---- */

typedef struct host {
  int64_t live, requests, refuse_at; /* blocks; allocations; the number of the refused one, or 0 */
  char text[512];
} host;

static host *host_of(const void *handle) { return (host *)(void *)((const tn_env *)handle)->record; }

static void *host_alloc(const void *handle, size_t bytes) {
  host *h = host_of(handle);
  if (++h->requests == h->refuse_at) return NULL;
  h->live++;
  return calloc(1, bytes);
}

static void host_free(const void *handle, void *block) {
  host_of(handle)->live -= block != NULL;
  free(block);
}

static tn_status host_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(host_of(handle)->text, sizeof host_of(handle)->text, format, args);
  va_end(args);
  return code;
}

static const tn_api table = {.struct_size = sizeof table,
                             .major = TN_ABI_MAJOR,
                             .minor = TN_ABI_MINOR,
                             .fail = host_fail,
                             .alloc = host_alloc,
                             .free = host_free};

typedef struct rig {
  host host;
  tn_env env;
  tn_onednn backend;
  tn_primitive_list list;
} rig;

static int open_rig(void **state) {
  rig *r = calloc(1, sizeof *r);
  if (r == NULL) return -1;
  r->env = (tn_env){&table, (tn_error_record *)(void *)&r->host};
  *state = r;
  if (tn_library_open(&r->env, &r->backend.library) != TN_OK) return -1;
  r->backend.library->backend = &r->backend;
  return tn_primitive_list_start(&r->list, &r->env, &r->backend, 2) == TN_OK ? 0 : -1;
}

static int close_rig(void **state) {
  rig *r = *state;
  tn_primitive_list_finish(&r->list);
  tn_library_close(r->backend.library, &r->env);
  int left = (int)r->host.live;
  free(r);
  return left;
}

static void restart(rig *r) {
  tn_primitive_list_finish(&r->list);
  assert_int_equal(tn_primitive_list_start(&r->list, &r->env, &r->backend, 2), TN_OK);
}

/* ---- layouts ---- */

typedef struct lay {
  const char *name;
  tn_type type;
  tn_layout layout;
} lay;

static const lay lays[] = {
    {"plain", {TN_F32, 3, {2, 3, 4}}, {1, 0, {0, 1, 2}, {{0, 0}}}},
    {"one dimension", {TN_F32, 1, {5}}, {1, 0, {0}, {{0, 0}}}},
    {"channels last", {TN_F32, 4, {2, 5, 3, 4}}, {1, 0, {0, 2, 3, 1}, {{0, 0}}}},
    {"of one element", {TN_F32, 4, {1, 1, 1, 1}}, {1, 0, {0, 2, 3, 1}, {{0, 0}}}},
    {"nChw8c", {TN_F32, 4, {2, 24, 3, 4}}, {1, 1, {0, 1, 2, 3}, {{1, 8}}}},
    {"nChw16c, padded", {TN_F32, 4, {2, 20, 3, 4}}, {1, 1, {0, 1, 2, 3}, {{1, 16}}}},
    {"OIhw16i16o", {TN_F32, 4, {32, 48, 3, 3}}, {1, 2, {0, 1, 2, 3}, {{1, 16}, {0, 16}}}},
    {"OIhw16i16o, padded", {TN_F32, 4, {20, 7, 3, 3}}, {1, 2, {0, 1, 2, 3}, {{1, 16}, {0, 16}}}},
    {"Ohwi16o", {TN_F32, 4, {32, 3, 7, 7}}, {1, 1, {0, 2, 3, 1}, {{0, 16}}}},
    {"two blocks on one dimension",
     {TN_BF16, 4, {32, 48, 3, 3}},
     {1, 3, {0, 1, 2, 3}, {{1, 8}, {0, 16}, {1, 2}}}},
    {"the same, padded", {TN_BF16, 4, {20, 18, 2, 1}}, {1, 3, {0, 1, 2, 3}, {{1, 8}, {0, 16}, {1, 2}}}},
    {"gOIhw16i16o", {TN_F32, 5, {2, 16, 32, 3, 3}}, {1, 2, {0, 1, 2, 3, 4}, {{2, 16}, {1, 16}}}},
};
enum { LAYS = sizeof lays / sizeof lays[0] };

/* Small numbers, which bf16 represents, too. */
static uint32_t drawn(const tn_type *type, int64_t at) {
  float value = (float)(1 + at % 97);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return type->dtype == TN_BF16 ? bits >> 16 : bits;
}

static uint32_t element(const tn_type *type, const void *data, int64_t at) {
  return type->dtype == TN_BF16 ? ((const uint16_t *)data)[at] : ((const uint32_t *)data)[at];
}

static int64_t position(const tn_type *type, const tn_storage *s, int64_t at) {
  int64_t sum = 0;
  for (int32_t d = type->rank; d-- > 0; at /= type->dims[d])
    sum += tn_storage_offset(s, d, at % type->dims[d]);
  return sum;
}

static void reorder(rig *r, const lay *l, void *from, void *to) {
  tn_layout plain = tn_layout_row_major(l->type.rank);
  tn_primitive_arg in = {0, TN_ARG_IN, 0, NULL}, out = {0, TN_ARG_OUT, 0, NULL};
  void *prepared = NULL;
  assert_int_equal(tn_dnnl_memory(&r->list, &l->type, &plain, &in.desc), TN_OK);
  assert_int_equal(tn_dnnl_memory(&r->list, &l->type, &l->layout, &out.desc), TN_OK);
  assert_int_equal(dnnl_memory_desc_get_size(out.desc),
                   (size_t)tn_storage_of(&l->type, &l->layout).count * tn_dtype_size(l->type.dtype));
  assert_int_equal(tn_primitive_list_add_reorder(&r->list, &in, &out), TN_OK);
  assert_int_equal(tn_primitive_list_compile(&r->list, &prepared), TN_OK);
  tn_view view_in = {l->type, plain, from}, view_out = {l->type, l->layout, to};
  void *workspace = aligned_alloc(64, (size_t)tn_primitive_list_workspace(&r->list) + 64);
  tn_launch launch = {.env = r->env,
                      .struct_size = sizeof(tn_launch),
                      .n_in = 1,
                      .n_out = 1,
                      .in = &view_in,
                      .out = &view_out,
                      .prepared = prepared,
                      .workspace = workspace};
  assert_int_equal(tn_primitive_list_launch(&launch), TN_OK);
  tn_primitive_list_release(&r->env, prepared);
  free(workspace);
}

static void a_layout_lies_as_storage_says(void **state) {
  for (int32_t i = 0; i < LAYS; i++) {
    const lay *l = &lays[i];
    const tn_type *type = &l->type;
    tn_storage s = tn_storage_of(type, &l->layout);
    size_t size = tn_dtype_size(type->dtype);
    uint8_t *from = malloc((size_t)tn_type_count(type) * size), *to = malloc((size_t)s.count * size);
    for (int64_t k = 0; k < tn_type_count(type); k++) {
      uint32_t bits = drawn(type, k);
      memcpy(from + (size_t)k * size, &bits, size); /* little-endian, as every processor of the library */
    }
    memset(to, 0x5a, (size_t)s.count * size);
    restart(*state);
    reorder(*state, l, from, to);
    for (int64_t k = 0; k < tn_type_count(type); k++) {
      int64_t at = position(type, &s, k);
      if (element(type, to, at) != drawn(type, k)) fail_msg("%s: element %lld", l->name, (long long)k);
      memset(to + (size_t)at * size, 0, size);
    }
    for (int64_t k = 0; k < s.count; k++) /* padding */
      if (element(type, to, k) != 0) fail_msg("%s: position %lld is not zero", l->name, (long long)k);
    free(from);
    free(to);
  }
}

static void a_layout_comes_back(void **state) {
  rig *r = *state;
  for (int32_t i = 0; i < LAYS; i++) {
    tn_dnnl_desc desc;
    tn_layout layout;
    restart(r);
    assert_int_equal(tn_dnnl_memory(&r->list, &lays[i].type, &lays[i].layout, &desc), TN_OK);
    if (tn_dnnl_layout(&r->list, &lays[i].type, desc, &layout) != TN_OK)
      fail_msg("%s: %s", lays[i].name, r->host.text);
    tn_storage got = tn_storage_of(&lays[i].type, &layout),
               want = tn_storage_of(&lays[i].type, &lays[i].layout);
    for (int64_t k = 0; k < tn_type_count(&lays[i].type); k++)
      assert_int_equal(position(&lays[i].type, &got, k), position(&lays[i].type, &want, k));
  }
}

static void what_the_library_does_not_have_is_refused(void **state) {
  static const tn_type image = {TN_F32, 4, {2, 21, 3, 4}}, wide = {TN_F64, 1, {3}},
                       empty = {TN_F32, 2, {0, 3}}, none = {TN_F32, 0, {0}};
  static const tn_layout sevens = {1, 1, {0, 1, 2, 3}, {{1, 7}}}, line = {1, 0, {0}, {{0, 0}}};
  rig *r = *state;
  tn_dnnl_desc desc;
  assert_int_equal(tn_dnnl_memory(&r->list, &image, &sevens, &desc), TN_EUNSUPPORTED);
  assert_non_null(strstr(r->host.text, "aBcd7b"));
  assert_int_equal(tn_dnnl_memory(&r->list, &wide, &line, &desc), TN_EUNSUPPORTED);
  assert_int_equal(tn_dnnl_memory(&r->list, &empty, &line, &desc), TN_EUNSUPPORTED);
  assert_int_equal(tn_dnnl_memory_any(&r->list, &none, &desc), TN_EUNSUPPORTED);
  for (int32_t i = 0; i < TN_PRIMITIVE_DESCS; i++)
    assert_int_equal(tn_dnnl_memory_any(&r->list, &image, &desc), TN_OK);
  assert_int_equal(tn_dnnl_memory_any(&r->list, &image, &desc), TN_EINTERNAL);
}

/* ---- primitives ---- */

/* 3x3, 16 channels to 16, of 8x8 images in the given layout. */
static dnnl_status_t convolution(rig *r, const uint8_t *order, dnnl_alg_kind_t algorithm,
                                 dnnl_primitive_desc_t *primitive) {
  static const tn_type image = {TN_F32, 4, {2, 16, 8, 8}}, weights = {TN_F32, 4, {16, 16, 3, 3}};
  tn_dnnl_convolution c = {.kind = dnnl_forward_training, .algorithm = algorithm};
  tn_layout layout = tn_layout_row_major(4), plain = layout;
  dnnl_primitive_attr_t attributes = NULL;
  if (order != NULL) memcpy(layout.order, order, 4);
  c.window = (tn_dnnl_window){{1, 1}, {0, 0}, {1, 1}, {1, 1}};
  assert_int_equal(tn_dnnl_memory(&r->list, &image, &layout, &c.x), TN_OK);
  assert_int_equal(tn_dnnl_memory(&r->list, &image, &plain, &c.y), TN_OK);
  assert_int_equal(tn_dnnl_memory_any(&r->list, &weights, &c.w), TN_OK);
  assert_int_equal(tn_dnnl_attributes(&r->env, &attributes), TN_OK);
  dnnl_status_t status = tn_dnnl_new_convolution(r->list.library->engine, &c, attributes, NULL, primitive);
  dnnl_primitive_attr_destroy(attributes);
  return status;
}

/* The library has only its reference for channels outside of images. */
static void the_librarys_reference_is_refused(void **state) {
  static const uint8_t channels_first[] = {1, 0, 2, 3};
  rig *r = *state;
  dnnl_primitive_desc_t primitive = NULL;
  tn_primitive_step *step;
  assert_int_equal(convolution(r, channels_first, dnnl_convolution_direct, &primitive), dnnl_success);
  assert_int_equal(tn_primitive_list_add(&r->list, primitive, &step), TN_EUNSUPPORTED);
  assert_non_null(strstr(r->host.text, "reference"));
  assert_int_equal(r->list.n_steps, 0);
}

/* ---- products ---- */

enum { ROWS = 130, COLUMNS = 140, DEPTH = 150 };

static float float_of(const tn_type *type, const void *data, int64_t at) {
  uint32_t bits = element(type, data, at) << (type->dtype == TN_BF16 ? 16 : 0);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void *drawn_matrix(const tn_type *type) {
  size_t size = tn_dtype_size(type->dtype);
  uint8_t *data = malloc((size_t)tn_type_count(type) * size);
  for (int64_t k = 0; k < tn_type_count(type); k++) {
    uint32_t bits = drawn(type, k);
    memcpy(data + (size_t)k * size, &bits, size);
  }
  return data;
}

static void launch_product(rig *r, const tn_type *a, const tn_type *b, const tn_type *c,
                           void *const data[3]) {
  void *prepared = NULL;
  assert_int_equal(tn_primitive_list_compile(&r->list, &prepared), TN_OK);
  tn_layout plain = tn_layout_row_major(2);
  tn_view in[2] = {{*a, plain, data[0]}, {*b, plain, data[1]}}, out = {*c, plain, data[2]};
  void *workspace = aligned_alloc(64, (size_t)tn_primitive_list_workspace(&r->list) + 64);
  tn_launch launch = {.env = r->env,
                      .struct_size = sizeof(tn_launch),
                      .n_in = 2,
                      .n_out = 1,
                      .in = in,
                      .out = &out,
                      .prepared = prepared,
                      .workspace = workspace};
  assert_int_equal(tn_primitive_list_launch(&launch), TN_OK);
  tn_primitive_list_release(&r->env, prepared);
  free(workspace);
}

/* The operands are small integers: f32 represents the sums, and bf16 rounds them by at most one part in 256.
 */
static void expect_product(const tn_type *a, const tn_type *b, const tn_type *c,
                           const tn_matmul_attributes *t, void *const data[3]) {
  for (int64_t i = 0; i < ROWS; i += 13)
    for (int64_t j = 0; j < COLUMNS; j++) {
      double sum = 0, got = (double)float_of(c, data[2], i * COLUMNS + j);
      for (int64_t k = 0; k < DEPTH; k++)
        sum += (double)float_of(a, data[0], t->transpose_a ? k * ROWS + i : i * DEPTH + k) *
               (double)float_of(b, data[1], t->transpose_b ? j * DEPTH + k : k * COLUMNS + j);
      double within = c->dtype == TN_BF16 ? sum / 256 : 0, distance = got > sum ? got - sum : sum - got;
      if (!(distance <= within)) fail_msg("element %d, %d is %g, expected %g", (int)i, (int)j, got, sum);
    }
}

/* Without AVX-512, the library has only its reference for products of bf16. */
static void products_of_matrices_are_right(void **state) {
  static const int32_t dtypes[3][2] = {{TN_F32, TN_F32}, {TN_BF16, TN_BF16}, {TN_BF16, TN_F32}};
  rig *r = *state;
  for (int32_t i = 0; i < 12; i++) {
    tn_matmul_attributes t = {i & 1, i >> 1 & 1, TN_MATH_FULL};
    int32_t dtype = dtypes[i / 4][0];
    tn_type a = {dtype, 2, {t.transpose_a ? DEPTH : ROWS, t.transpose_a ? ROWS : DEPTH}},
            b = {dtype, 2, {t.transpose_b ? COLUMNS : DEPTH, t.transpose_b ? DEPTH : COLUMNS}},
            c = {dtypes[i / 4][1], 2, {ROWS, COLUMNS}};
    const tn_type *in[2] = {&a, &b}, *out[1] = {&c};
    tn_node node = {.op = "matmul", .attributes = &t};
    tn_match_node first = {.node = &node};
    tn_match match = {.nodes = &first, .n_nodes = 1, .in = in, .n_in = 2, .out = out, .n_out = 1};
    restart(r);
    tn_status status = tn_dnnl_matmul_list(&r->list, &match);
    if (status == TN_EUNSUPPORTED && dtype == TN_BF16 && tn_onednn_isa() < TN_ISA_AVX512) continue;
    assert_int_equal(status, TN_OK);
    void *data[3] = {drawn_matrix(&a), drawn_matrix(&b), drawn_matrix(&c)};
    launch_product(r, &a, &b, &c, data);
    expect_product(&a, &b, &c, &t, data);
    for (int32_t k = 0; k < 3; k++) free(data[k]);
  }
}

static tn_status compile_list(tn_env *env) {
  static const tn_type type = {TN_F32, 1, {8}}, other = {TN_BF16, 1, {8}};
  static const tn_layout line = {1, 0, {0}, {{0, 0}}};
  tn_primitive_arg from = {0, TN_ARG_IN, 0, NULL}, to = {0, TN_ARG_OUT, 0, NULL};
  tn_onednn backend = {.library = NULL};
  tn_primitive_list list = {.env = NULL};
  void *prepared = NULL;
  tn_status status = tn_library_open(env, &backend.library);
  if (status == TN_OK) status = tn_primitive_list_start(&list, env, &backend, 1);
  if (status == TN_OK) status = tn_dnnl_memory(&list, &type, &line, &from.desc);
  if (status == TN_OK) status = tn_dnnl_memory(&list, &other, &line, &to.desc);
  if (status == TN_OK) status = tn_primitive_list_add_reorder(&list, &from, &to);
  if (status == TN_OK) status = tn_primitive_list_compile(&list, &prepared);
  tn_primitive_list_release(env, prepared);
  tn_primitive_list_finish(&list);
  tn_library_close(backend.library, env);
  return status;
}

static void refused_memory_leaks_nothing(void **state) {
  tn_status status = TN_ENOMEM;
  (void)state;
  for (int64_t k = 1; status != TN_OK; k++) {
    host h = {.refuse_at = k};
    tn_env env = {&table, (tn_error_record *)(void *)&h};
    status = compile_list(&env);
    assert_int_equal(h.live, 0);
    assert_int_equal(status, h.requests >= k ? TN_ENOMEM : TN_OK);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_layout_lies_as_storage_says),
      TEST(a_layout_comes_back),
      TEST(what_the_library_does_not_have_is_refused),
      TEST(the_librarys_reference_is_refused),
      TEST(products_of_matrices_are_right),
      cmocka_unit_test(refused_memory_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
