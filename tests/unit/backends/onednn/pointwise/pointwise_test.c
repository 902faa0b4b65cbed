#include "tests/unit/backends/onednn/isa_rig.h"

#include <fenv.h>

#include "backends/onednn/onednn.h"
#include "tenon/plugin/storage.h"

extern const tn_kernel tn_kernel_cpu_pointwise, tn_kernel_onednn_pointwise;

/* Regions of training as the compiler makes them, over images whose channels come in blocks, and over other
 * shapes. Everything but elementary functions must have the reference's bits, on every instruction set. */

typedef struct build {
  rig_match m;
  tn_type space;
  tn_affine_attributes affine[8];
  tn_full_attributes full[4];
  tn_cast_attributes cast[4];
  tn_random_attributes random;
  tn_iota_attributes iota;
  tn_spread_attributes spread;
  int32_t n_affine, n_full, n_cast;
} build;

static tn_type of_space(const build *b, int32_t dtype) {
  tn_type t = b->space;
  t.dtype = dtype;
  return t;
}

/* One value for each channel, or for each element of a row. */
static tn_type per_channel(const build *b, int32_t dtype) {
  return b->space.rank == 4 ? RIG_TYPE(dtype, b->space.dims[1], 1, 1)
                            : RIG_TYPE(dtype, b->space.dims[b->space.rank - 1]);
}

static tn_type result_type(const build *b, const char *op, int32_t n_in, const int32_t *in) {
  bool narrow = true, compares = strchr("lg", op[0]) != NULL && strlen(op) == 2;
  for (int32_t i = 0; i < n_in; i++) narrow = narrow && !tn_type_same_dims(&b->m.types[in[i]], &b->space);
  tn_type t = narrow ? b->m.types[in[0]] : b->space;
  t.dtype = compares ? TN_BOOL : b->m.types[in[n_in - 1]].dtype;
  return t;
}

static int32_t op2(build *b, const char *op, int32_t x, int32_t y) {
  int32_t in[2] = {x, y};
  tn_type t = result_type(b, op, 2, in);
  return rig_node(&b->m, op, NULL, in, 2, &t, 1);
}

static int32_t op1(build *b, const char *op, int32_t x) {
  tn_type t = b->m.types[x];
  return rig_node(&b->m, op, NULL, &x, 1, &t, 1);
}

static int32_t affine(build *b, int32_t x, double scale, double shift) {
  tn_affine_attributes *a = &b->affine[b->n_affine++];
  tn_type t = b->m.types[x];
  *a = (tn_affine_attributes){scale, shift};
  return rig_node(&b->m, "affine", a, &x, 1, &t, 1);
}

static int32_t cast(build *b, int32_t x, int32_t dtype) {
  tn_cast_attributes *a = &b->cast[b->n_cast++];
  tn_type t = b->m.types[x];
  t.dtype = a->to = dtype;
  return rig_node(&b->m, "cast", a, &x, 1, &t, 1);
}

static int32_t constant(build *b, double value, int32_t dtype) {
  tn_full_attributes *a = &b->full[b->n_full++];
  tn_type t = rig_type(dtype, 0, NULL);
  *a = (tn_full_attributes){{0, NULL}, value, dtype};
  return rig_node(&b->m, "full", a, NULL, 0, &t, 1);
}

static int32_t where(build *b, int32_t c, int32_t x, int32_t y) {
  int32_t in[3] = {c, x, y};
  tn_type t = of_space(b, b->m.types[x].dtype);
  return rig_node(&b->m, "where", NULL, in, 3, &t, 1);
}

static int32_t operand(build *b, tn_type type) { return rig_in(&b->m, &type); }

/* ---- the regions ---- */

/* batch_norm's apply, a residual sum, relu, and a copy in the dtype of the activations */
static void normalize(build *b, int32_t dtype) {
  int32_t x = operand(b, of_space(b, dtype)), residual = operand(b, of_space(b, dtype));
  int32_t mean = operand(b, per_channel(b, TN_F32)), scale = operand(b, per_channel(b, TN_F32));
  int32_t shift = operand(b, per_channel(b, TN_F32)), wide = cast(b, x, TN_F32);
  int32_t y = op2(b, "mul", op2(b, "sub", wide, mean), affine(b, scale, 0.5, 1));
  y = op2(b, "add", op2(b, "add", y, shift), cast(b, residual, TN_F32));
  y = op2(b, "maximum", y, constant(b, 0, TN_F32));
  rig_out(&b->m, y);
  rig_out(&b->m, cast(b, y, dtype));
}

/* the gradients of relu and of batch_norm's apply */
static void normalize_back(build *b, int32_t dtype) {
  int32_t y = operand(b, of_space(b, dtype)), dy = operand(b, of_space(b, dtype));
  int32_t x = operand(b, of_space(b, dtype)), scale = operand(b, per_channel(b, dtype));
  int32_t shift = operand(b, per_channel(b, dtype)), zero = constant(b, 0, dtype);
  int32_t g = where(b, op2(b, "gt", y, zero), dy, zero);
  rig_out(&b->m, g);
  int32_t d = op2(b, "sub", op2(b, "mul", g, scale), op2(b, "mul", x, shift));
  rig_out(&b->m, op2(b, "sub", shift, op2(b, "minimum", d, scale)));
}

/* dropout: the mask is drawn by the element's place in row-major order, however it lies */
static void drop(build *b, int32_t dtype) {
  tn_type scalar = rig_type(TN_I64, 0, NULL), drawn = of_space(b, TN_F32);
  int32_t x = operand(b, of_space(b, dtype)), counters[2] = {operand(b, scalar), operand(b, scalar)};
  int32_t bias = operand(b, per_channel(b, dtype));
  b->random = (tn_random_attributes){{drawn.rank, b->space.dims}, 77, 0, 1, TN_F32};
  int32_t u = rig_node(&b->m, "random_uniform", &b->random, counters, 2, &drawn, 1);
  int32_t keep = op2(b, "ge", u, constant(b, 0.3, TN_F32));
  rig_out(&b->m, keep);
  rig_out(&b->m, where(b, keep, affine(b, op2(b, "add", x, bias), 1 / 0.7, 0), constant(b, 0, dtype)));
}

/* positions, and operands that are repeated along other dimensions than the channels */
static void place(build *b, int32_t dtype) {
  tn_type along[3] = {of_space(b, dtype), of_space(b, dtype), of_space(b, TN_F32)};
  for (int32_t i = 0; i < b->space.rank - 1; i++) along[0].dims[i] = 1;
  along[1].dims[b->space.rank - 1] = 1;
  for (int32_t i = 1; i < b->space.rank; i++) along[2].dims[i] = 1;
  int32_t x = operand(b, of_space(b, dtype)), row = operand(b, along[0]), column = operand(b, along[1]);
  int32_t sample = operand(b, along[2]);
  b->iota = (tn_iota_attributes){{b->space.rank, b->space.dims}, -1, dtype};
  tn_type index = of_space(b, dtype);
  int32_t i = rig_node(&b->m, "iota", &b->iota, NULL, 0, &index, 1);
  int32_t y = op2(b, "maximum", op2(b, "mul", op2(b, "add", x, row), column), i);
  rig_out(&b->m, op2(b, "div", cast(b, y, TN_F32), affine(b, sample, 0, 2)));
}

/* products and sums with constants that change nothing, inside, and as results of an operand alone */
static void keep(build *b, int32_t dtype) {
  int32_t x = operand(b, of_space(b, dtype)), scale = operand(b, per_channel(b, dtype));
  int32_t same = affine(b, x, 1, 0), factor = affine(b, affine(b, scale, 1, 0), 1, 0.25);
  rig_out(&b->m, same);
  rig_out(&b->m, op2(b, "mul", affine(b, same, 3, 0), factor));
  rig_out(&b->m, op2(b, "sub", affine(b, op2(b, "mul", same, factor), 1, 0), x));
}

/* an operand and a result of every other kind of lane */
static void mix(build *b, int32_t dtype) {
  int32_t x = operand(b, of_space(b, dtype)), k = operand(b, of_space(b, TN_I32));
  int32_t flag = operand(b, of_space(b, TN_BOOL)), byte = operand(b, of_space(b, TN_U8));
  int32_t wide = operand(b, per_channel(b, TN_F64)), long_one = operand(b, per_channel(b, TN_I64));
  int32_t s = op2(b, "add", op2(b, "mul", k, k), cast(b, byte, TN_I32));
  rig_out(&b->m, s);
  rig_out(&b->m, where(b, flag, op2(b, "add", cast(b, x, TN_F64), wide), constant(b, 2.5, TN_F64)));
  rig_out(&b->m, op2(b, "maximum", cast(b, s, TN_I64), long_one));
  rig_out(&b->m, op2(b, "lt", op1(b, "neg", k), k));
}

/* every other op over floats, in a chain, and more values alive at once than the processor has registers */
static void all_ops(build *b, int32_t dtype) {
  int32_t x = operand(b, of_space(b, dtype)), y = operand(b, per_channel(b, dtype)), kept[34];
  int32_t s = op2(b, "mul", op1(b, "sign", x), op1(b, "floor", y)), n = op1(b, "abs", op1(b, "neg", x));
  tn_type flag = of_space(b, TN_BOOL);
  int32_t finite = rig_node(&b->m, "is_finite", NULL, &n, 1, &flag, 1);
  int32_t less = op2(b, "le", x, y), sum = op2(b, "minimum", n, s);
  for (int32_t i = 0; i < 34; i++) kept[i] = op2(b, i % 2 ? "add" : "maximum", i > 0 ? kept[i - 1] : x, y);
  for (int32_t i = 0; i < 34; i++) sum = op2(b, "sub", sum, kept[i]);
  rig_out(&b->m, finite);
  rig_out(&b->m, where(b, less, op2(b, "div", sum, op1(b, "sqrt", n)), where(b, finite, s, n)));
}

/* elementary functions, which are not exact */
static void functions(build *b, int32_t dtype) {
  int32_t x = operand(b, of_space(b, dtype)), scale = operand(b, per_channel(b, dtype));
  int32_t y = op2(b, "mul", x, scale);
  rig_out(&b->m, op2(b, "add", op1(b, "sigmoid", y), op1(b, "tanh", x)));
  rig_out(&b->m, op1(b, "exp", op1(b, "neg", op1(b, "abs", op1(b, "erf", y)))));
}

/* ---- drawing and checking ---- */

static const struct {
  void (*region)(build *b, int32_t dtype);
  double tolerance;
} regions[] = {{normalize, 0}, {normalize_back, 0}, {drop, 0},    {place, 0},
               {mix, 0},       {keep, 0},           {all_ops, 0}, {functions, 1e-6}};
enum { REGIONS = sizeof regions / sizeof regions[0] };

/* With machine code of each instruction set that the processor has, and with instructions alone. */
static void check_ways(const rig_match *m, void *const *in, double tolerance, int32_t variants) {
  tn_onednn interpreted = {.options = {.code = TN_CODE_OFF}};
  ways_check(&tn_kernel_onednn_pointwise, &tn_kernel_cpu_pointwise, m, in, tolerance, variants);
  ways_use_backend(&interpreted);
  ways_check(&tn_kernel_onednn_pointwise, &tn_kernel_cpu_pointwise, m, in, tolerance, variants);
  ways_use_backend(NULL);
}

/* Counters, which are i64 scalars, are not negative. */
static void *drawn(const tn_type *type, tn_rng *rng) {
  void *data = rig_drawn(type, rng);
  if (type->dtype == TN_I64 && type->rank == 0) *(int64_t *)data = tn_rng_below(rng, 1000);
  return data;
}

static void check(size_t k, int32_t dtype, const tn_type *space, int32_t variants, tn_rng *rng) {
  build *b = calloc(1, sizeof *b);
  void *in[8];
  b->space = *space;
  rig_start(&b->m);
  regions[k].region(b, dtype);
  for (int32_t i = 0; i < b->m.match.n_in; i++) in[i] = drawn(b->m.in[i], rng);
  double tolerance = regions[k].tolerance * (dtype == TN_F32 ? 1 : dtype == TN_BF16 ? 16384 : 4096);
  check_ways(&b->m, in, tolerance, variants);
  for (int32_t i = 0; i < b->m.match.n_in; i++) free(in[i]);
  free(b);
}

static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};

static void channels_in_blocks_give_the_bits_of_row_major_ones(void **state) {
  (void)state;
  static const struct {
    int64_t dims[4];
    int32_t variants;
  } shapes[] = {{{2, 16, 5, 7}, 4}, {{3, 8, 9, 9}, 3},   {{1, 48, 17, 1}, 4}, {{2, 24, 3, 11}, 3},
                {{2, 6, 4, 4}, 2},  {{2, 32, 1, 1}, 4},  {{0, 16, 2, 2}, 1},  {{1, 32, 23, 19}, 4},
                {{1, 1, 1, 1}, 1},  {{3, 16, 14, 14}, 4}};
  tn_rng rng = tn_rng_at(81, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < REGIONS; k++)
      for (size_t d = 0; d < 3; d++) {
        tn_type space = rig_type(dtypes[d], 4, shapes[s].dims);
        check(k, dtypes[d], &space, shapes[s].variants, &rng);
      }
}

static void rows_short_and_long_give_the_bits_of_the_reference(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{1, 1},    {1, 37},   {40, 10},  {9, 64},
                                      {11, 513}, {4, 2000}, {200, 17}, {2, 9000}};
  tn_rng rng = tn_rng_at(82, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < REGIONS; k++)
      for (size_t d = 0; d < 3; d++) {
        tn_type space = rig_type(dtypes[d], 2, shapes[s]);
        check(k, dtypes[d], &space, 0, &rng);
      }
}

/* ---- optimizers ---- */

/* sgd with momentum over a flat region, as the compiler writes it: unscaled and clipped gradients, a learning
 * rate for each range of parameters, everything predicated, and a copy in bf16 */
/* quotients, of operands that are not zero */
static void divide(build *b) {
  int32_t x = operand(b, of_space(b, TN_F32)), y = operand(b, of_space(b, TN_F32));
  rig_out(&b->m, op1(b, "rsqrt", x));
  rig_out(&b->m, op2(b, "div", op1(b, "reciprocal", x), y));
}

/* Where the application traps exceptions, as a plugin that calls kernels by itself may: lanes behind a row
 * raise none of their own. */
static void lanes_behind_a_row_divide_by_no_zero(void **state) {
  (void)state;
  static const float values[7] = {1, 2, 0.5f, 3, 8, 0.25f, 5};
  for (int64_t n = 1; n < 36; n++) {
    build *b = calloc(1, sizeof *b);
    float *in[2];
    b->space = RIG_TYPE(TN_F32, 3, n);
    rig_start(&b->m);
    divide(b);
    for (int i = 0; i < 2; i++) {
      in[i] = calloc((size_t)(3 * n), sizeof(float));
      for (int64_t k = 0; k < 3 * n; k++) in[i][k] = values[(k + i) % 7];
    }
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    check_ways(&b->m, (void *const *)in, 0, 0);
    fedisableexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < 2; i++) free(in[i]);
    free(b);
  }
}

static void update(build *b) {
  static int64_t starts[] = {0, 100, 101, 1700}, index[] = {1, 0, 1, 2};
  tn_type scalar = rig_type(TN_F32, 0, NULL), flag = rig_type(TN_BOOL, 0, NULL), rates = RIG_TYPE(TN_F32, 3);
  int32_t param = operand(b, b->space), grad = operand(b, b->space), buffer = operand(b, b->space);
  int32_t factor = operand(b, scalar), finite = operand(b, flag), lr = operand(b, rates);
  int32_t updates = operand(b, rig_type(TN_I64, 0, NULL));
  b->spread = (tn_spread_attributes){{4, starts}, {4, index}, b->space.dims[0]};
  tn_type wide = b->space;
  int32_t rate = rig_node(&b->m, "spread", &b->spread, &lr, 1, &wide, 1);
  int32_t d = op2(b, "add", op2(b, "mul", grad, factor), affine(b, param, 5e-4, 0));
  int32_t first = op2(b, "le", updates, constant(b, 1, TN_I64));
  int32_t later = op2(b, "add", affine(b, buffer, 0.9, 0), d), moved = where(b, first, d, later);
  int32_t next = op2(b, "sub", param, op2(b, "mul", moved, rate));
  int32_t kept = where(b, finite, next, param);
  rig_out(&b->m, where(b, finite, moved, buffer));
  rig_out(&b->m, kept);
  rig_out(&b->m, cast(b, kept, TN_BF16));
}

static void a_flat_update_gives_the_bits_of_the_reference_and_works_in_place(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(83, 0);
  for (int64_t n = 1; n < 40000; n = n * 7 + 1) {
    build *b = calloc(1, sizeof *b);
    void *in[8];
    b->space = RIG_TYPE(TN_F32, n);
    rig_start(&b->m);
    update(b);
    for (int32_t i = 0; i < b->m.match.n_in; i++) in[i] = rig_drawn(b->m.in[i], &rng);
    check_ways(&b->m, in, 0, 1);
    rig_answer answer = rig_query(&tn_kernel_onednn_pointwise, &b->m);
    bool buffer = false, param = false;
    for (int32_t i = 0; i < answer.n_inplace; i++) {
      buffer = buffer || (answer.inplace[i][0] == 2 && answer.inplace[i][1] == 0);
      param = param || (answer.inplace[i][0] == 0 && answer.inplace[i][1] == 1);
    }
    assert_true(buffer && param);
    for (int32_t i = 0; i < b->m.match.n_in; i++) free(in[i]);
    free(b);
  }
}

/* ---- past the caches ---- */

enum { LINE = 64 };

static void *lines(const tn_type *type) {
  size_t bytes = (size_t)tn_type_count(type) * tn_dtype_size(type->dtype);
  return memset(aligned_alloc(LINE, (bytes + LINE) / LINE * LINE), 0x5a, (bytes + LINE) / LINE * LINE);
}

/* Operands and results begin lines, as they do in an arena; from `offset` bytes on they do not. */
static void check_past_caches(const build *b, void *const *in, size_t offset) {
  void *out[2][8], *at[2][8];
  for (int32_t way = 0; way < 2; way++) {
    for (int32_t i = 0; i < b->m.match.n_out; i++) {
      out[way][i] = lines(b->m.out[i]);
      at[way][i] = (uint8_t *)out[way][i] + offset;
    }
    ways_use_cached_bytes(way == 0 ? INT64_MAX : 0);
    rig_memory memory = {.in = in, .out = at[way], .threads = 2};
    assert_int_equal(rig_run(&tn_kernel_onednn_pointwise, &b->m, &memory, NULL), TN_OK);
  }
  ways_use_cached_bytes(INT64_MAX);
  for (int32_t i = 0; i < b->m.match.n_out; i++) {
    size_t bytes = (size_t)tn_type_count(b->m.out[i]) * tn_dtype_size(b->m.out[i]->dtype);
    assert_memory_equal(at[0][i], at[1][i], bytes);
    for (int32_t way = 0; way < 2; way++) free(out[way][i]);
  }
}

static void results_written_past_the_caches_have_the_same_bits(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{1, 8 * 1024}, {3, 1000}, {5, 4096 + 16}};
  tn_rng rng = tn_rng_at(84, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t k = 0; k < REGIONS; k++)
      for (size_t d = 0; d < 3; d++) {
        build *b = calloc(1, sizeof *b);
        void *in[8];
        b->space = rig_type(dtypes[d], 2, shapes[s]);
        rig_start(&b->m);
        regions[k].region(b, dtypes[d]);
        for (int32_t i = 0; i < b->m.match.n_in; i++) {
          void *from = drawn(b->m.in[i], &rng);
          size_t bytes = (size_t)tn_type_count(b->m.in[i]) * tn_dtype_size(b->m.in[i]->dtype);
          in[i] = memcpy(lines(b->m.in[i]), from, bytes);
          free(from);
        }
        check_past_caches(b, in, 0);
        check_past_caches(b, in, sizeof(double));
        for (int32_t i = 0; i < b->m.match.n_in; i++) free(in[i]);
        free(b);
      }
}

/* ---- choices ---- */

static void the_instruction_set_can_be_limited_by_an_option(void **state) {
  (void)state;
  tn_onednn backend = {.options = {.isa = 0}};
  assert_int_equal(tn_onednn_isa_of(NULL), tn_onednn_isa());
  assert_int_equal(tn_onednn_isa_of(&backend), tn_onednn_isa());
  backend.options.isa = 1;
  assert_int_equal(tn_onednn_isa_of(&backend), TN_ISA_PLAIN);
  backend.options.isa = 3;
  assert_true(tn_onednn_isa_of(&backend) <= tn_onednn_isa());
}

static void machine_code_can_be_switched_off_by_an_option(void **state) {
  (void)state;
  tn_onednn backend = {.options = {.code = TN_CODE_OFF}};
  assert_int_equal(tn_onednn_code_isa(&backend), TN_ISA_PLAIN);
  backend.options.code = TN_CODE_AUTO;
  assert_int_equal(tn_onednn_code_isa(&backend), tn_onednn_isa());
  backend.options.isa = 1 + TN_ISA_PLAIN;
  assert_int_equal(tn_onednn_code_isa(&backend), TN_ISA_PLAIN);
}

static void only_positions_without_an_element_are_padding(void **state) {
  (void)state;
  tn_type type = RIG_TYPE(TN_U8, 2, 5, 3);
  tn_layout layout = {1, 2, {0, 2, 1}, {{1, 4}, {0, 2}}};
  uint8_t data[1 * 3 * 2 * 4 * 2];
  memset(data, 1, sizeof data);
  tn_storage storage = tn_storage_of(&type, &layout);
  assert_true(storage.padded);
  tn_storage_clear_padding(&storage, &type, data);
  for (int32_t i = 0; i < (int32_t)sizeof data; i++) assert_int_equal(data[i], i / 8 % 2 * 4 + i / 2 % 4 < 5);
  layout.block[0].size = 5;
  assert_false(tn_storage_of(&type, &layout).padded);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_in_blocks_give_the_bits_of_row_major_ones),
      cmocka_unit_test(rows_short_and_long_give_the_bits_of_the_reference),
      cmocka_unit_test(lanes_behind_a_row_divide_by_no_zero),
      cmocka_unit_test(a_flat_update_gives_the_bits_of_the_reference_and_works_in_place),
      cmocka_unit_test(results_written_past_the_caches_have_the_same_bits),
      cmocka_unit_test(the_instruction_set_can_be_limited_by_an_option),
      cmocka_unit_test(machine_code_can_be_switched_off_by_an_option),
      cmocka_unit_test(only_positions_without_an_element_are_padding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
