/* Regions as CUDA C: the parts that are text and those that are words, and that it compiles. The numbers are
 * tested by the conformance suite on the double of CUDA. */
#include "tests/unit/backends/cpu/rig.h"

#include <stdio.h>

#include "backends/cuda/modules/compile.h"
#include "backends/cuda/pointwise/printed.h"
#include "tests/unit/backends/cuda/rig.h"

extern const tn_kernel tn_kernel_cuda_pointwise;

/* ---- a kernel whose query prints ---- */

static tn_cuda_printed made;
static char text[1 << 17];
static const tn_layout *lies;

static tn_status look_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "printed", .deterministic = 1, .capturable = 1};
  tn_status status = tn_cuda_print(q, q->match, lies, &made);
  if (status == TN_OK) tn_add_variant(q, &v);
  if (status == TN_OK) assert_true(snprintf(text, sizeof text, "%s", made.text) < (int)sizeof text);
  tn_cuda_drop_printed(q, &made);
  made.text = NULL;
  return status;
}

static const tn_kernel looker = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "looker", ""),
                                 .family = "none",
                                 .pattern = "pointwise+",
                                 .query = look_query};

static const char *print_in(const rig_match *m, const tn_layout *layout) {
  lies = layout;
  rig_answer answer = rig_query(&looker, m);
  if (answer.status != TN_OK) fail_msg("%s", answer.text);
  return text;
}

static const char *print(const rig_match *m) { return print_in(m, NULL); }

static void check_has(const char *part) {
  if (strstr(text, part) == NULL) fail_msg("no %s in %s", part, text);
}

static void check_has_not(const char *part) {
  if (strstr(text, part) != NULL) fail_msg("%s in %s", part, text);
}

static int count_of(const char *part) {
  int n = 0;
  for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) n++;
  return n;
}

/* ---- matches ---- */

static rig_match m;

static int32_t operand(tn_type type) { return rig_in(&m, &type); }
static int32_t op1(const char *op, const void *attributes, int32_t x, tn_type type) {
  return rig_node(&m, op, attributes, &x, 1, &type, 1);
}
static int32_t op2(const char *op, int32_t x, int32_t y, tn_type type) {
  int32_t in[2] = {x, y};
  return rig_node(&m, op, NULL, in, 2, &type, 1);
}

/* y = (x * scale + shift) * factor, by channel. */
static void scaled(tn_type x, tn_type channel, double factor, double shift) {
  static tn_affine_attributes a;
  a = (tn_affine_attributes){factor, shift};
  rig_start(&m);
  int32_t in = operand(x), scale = operand(channel), y = op2("mul", in, scale, x);
  rig_out(&m, op1("affine", &a, y, x));
}

/* ---- one text for a structure ---- */

static void regions_that_differ_in_sizes_and_numbers_have_one_text(void **state) {
  (void)state;
  static char first[sizeof text];
  scaled(RIG_TYPE(TN_F32, 8, 16, 4, 4), RIG_TYPE(TN_F32, 16, 1, 1), 0.5, 3);
  strcpy(first, print(&m));
  tn_cuda_printed one = made;
  scaled(RIG_TYPE(TN_F32, 2, 64, 32, 8), RIG_TYPE(TN_F32, 64, 1, 1), 0.25, 7);
  assert_string_equal(first, print(&m));
  assert_int_equal(one.n_words, made.n_words);
  assert_int_equal(one.words[TN_CUDA_PW_COUNT], 8 * 16 * 16);
  assert_int_equal(made.words[TN_CUDA_PW_COUNT], 2 * 64 * 256);
  assert_true(memcmp(one.words, made.words, sizeof made.words) != 0);
}

static void regions_that_differ_in_structure_have_different_texts(void **state) {
  (void)state;
  static char first[sizeof text];
  tn_type channel = RIG_TYPE(TN_F32, 16, 1, 1);
  scaled(RIG_TYPE(TN_F32, 8, 16, 4, 4), channel, 0.5, 3);
  strcpy(first, print(&m));
  scaled(RIG_TYPE(TN_F32, 8, 16, 3, 3), channel, 0.5, 3); /* 9 positions of a channel */
  assert_string_not_equal(first, print(&m));
  scaled(RIG_TYPE(TN_F32, 8, 16, 4, 4), RIG_TYPE(TN_F32, 8, 1, 1, 1), 0.5, 3);
  assert_string_not_equal(first, print(&m));
}

/* ---- positions of a thread ---- */

static void threads_take_16_bytes_of_the_narrowest_operand(void **state) {
  (void)state;
  static const struct {
    int32_t dtype, width;
  } cases[] = {{TN_F16, 8}, {TN_BF16, 8}, {TN_F32, 4}, {TN_I32, 4}, {TN_F64, 2}, {TN_I64, 2}, {TN_U8, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_type t = RIG_TYPE(cases[i].dtype, 999);
    rig_start(&m);
    rig_out(&m, op1("is_finite", NULL, operand(t), RIG_TYPE(TN_BOOL, 999)));
    print(&m);
    assert_int_equal(made.width, 8); /* of the bools */
    rig_start(&m);
    int32_t x = operand(t), y = operand(t), c = operand(rig_type(TN_BOOL, 0, NULL)), in[3] = {c, x, y};
    rig_out(&m, rig_node(&m, "where", NULL, in, 3, &t, 1));
    print(&m);
    assert_int_equal(made.width, cases[i].width);
    assert_int_equal(made.alignment[0], made.width * (int)tn_dtype_size(t.dtype));
    assert_int_equal(made.alignment[2], 1); /* the single value */
  }
}

static void many_operands_make_threads_take_less(void **state) {
  (void)state;
  tn_type t = RIG_TYPE(TN_F32, 512), byte = RIG_TYPE(TN_U8, 512);
  int32_t x[20];
  rig_start(&m);
  for (int32_t i = 0; i < 20; i++) x[i] = operand(t);
  int32_t y = operand(byte), sum = x[0];
  for (int32_t i = 1; i < 20; i++) sum = op2("add", sum, x[i], t);
  rig_out(&m, sum);
  rig_out(&m, op2("eq", y, y, RIG_TYPE(TN_BOOL, 512)));
  print(&m);
  assert_int_equal(made.width, 2);
}

/* ---- operands that repeat ---- */

static void channels_that_come_last_are_read_by_packs(void **state) {
  (void)state;
  static const tn_layout last = {.set = 1, .order = {0, 2, 3, 1}};
  scaled(RIG_TYPE(TN_F16, 8, 16, 3, 3), RIG_TYPE(TN_F16, 16, 1, 1), 2, 0);
  print_in(&m, &last);
  check_has("x1 = load<8>(in1, m1, n, whole)");
  check_has("m1 = map_1(a, p)");
  check_has_not("e1");
}

static void channels_in_front_are_read_once_by_a_thread(void **state) {
  (void)state;
  scaled(RIG_TYPE(TN_F16, 8, 16, 4, 4), RIG_TYPE(TN_F16, 16, 1, 1), 2, 0);
  print(&m);
  check_has("v1 = widen(in1[m1])");
  check_has_not("e1");
  scaled(RIG_TYPE(TN_F16, 8, 16, 6, 2), RIG_TYPE(TN_F16, 16, 1, 1), 2, 0);
  print(&m); /* 12 positions of a channel */
  assert_int_equal(made.width, 4);
  check_has("v1 = widen(in1[m1])");
  scaled(RIG_TYPE(TN_F16, 8, 16, 7, 7), RIG_TYPE(TN_F16, 16, 1, 1), 2, 0);
  print(&m);
  check_has("v1 = widen(in1[e1])");
}

static void operands_that_repeat_alike_share_a_walk(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 6, 7), row = RIG_TYPE(TN_F32, 7);
  rig_start(&m);
  int32_t in = operand(x), a = operand(row), b = operand(row);
  rig_out(&m, op2("add", op2("mul", in, a, x), b, x));
  print(&m);
  assert_int_equal(count_of("= map_"), 1);
  assert_int_equal(count_of("at_t map_"), 1);
}

/* Dividers: quotients by the words of a map, for divisors of all sizes. */
static void quotients_are_exact(void **state) {
  (void)state;
  for (uint32_t bits = 1; bits < 31; bits++)
    for (int32_t more = -1; more <= 1; more++) {
      int64_t d = ((int64_t)1 << bits) + more;
      if (d < 2 || d >= INT32_MAX / 4) continue;
      scaled(RIG_TYPE(TN_F32, 3, d), RIG_TYPE(TN_F32, 3, 1), 1, 0);
      print(&m);
      uint64_t word = made.words[TN_CUDA_PW_POINTERS + 4];
      assert_int_equal(made.words[TN_CUDA_PW_POINTERS + 3], d);
      uint32_t multiplier = (uint32_t)word, shift = (uint32_t)(word >> 32);
      for (uint64_t q = 0; q < 1000; q++) {
        uint32_t p = (uint32_t)(((uint64_t)INT32_MAX * q / 1000) / (uint64_t)d * (uint64_t)d);
        for (int32_t k = -1; k <= 1; k++) {
          uint32_t n = (uint32_t)((int64_t)p + k < 0 ? 0 : (int64_t)p + k);
          uint32_t quotient = ((uint32_t)((uint64_t)n * multiplier >> 32) + n) >> shift;
          assert_int_equal(quotient, n / d);
        }
      }
    }
}

static void positions_beyond_31_bits_have_64(void **state) {
  (void)state;
  scaled(RIG_TYPE(TN_F32, 1 << 16, 1 << 14), RIG_TYPE(TN_F32, 1 << 14), 1, 0);
  print(&m);
  check_has("typedef u32 at_t;");
  scaled(RIG_TYPE(TN_F32, 1 << 17, 1 << 14), RIG_TYPE(TN_F32, 1 << 14), 1, 0);
  print(&m);
  check_has("typedef i64 at_t;");
}

/* ---- random numbers, ranges, work that is done once ---- */

static void streams_share_a_text(void **state) {
  (void)state;
  static char first[sizeof text];
  tn_type t = RIG_TYPE(TN_F32, 6, 8), scalar = rig_type(TN_I64, 0, NULL);
  for (int32_t i = 0; i < 2; i++) {
    tn_random_attributes a = {{2, t.dims}, 77 + i, 0.5 * i, 1 + i, TN_F32};
    rig_start(&m);
    int32_t counters[2] = {operand(scalar), operand(scalar)};
    rig_out(&m, rig_node(&m, "random_uniform", &a, counters, 2, &t, 1));
    print(&m);
    if (i == 0) strcpy(first, text);
  }
  assert_string_equal(first, text);
  check_has("random_run<UNIFORM>");
  assert_int_equal(made.width, 4);
}

/* momentum and decay change at the same places; the power of the bias correction is for all positions. */
static void updates_share_tables_and_do_powers_once_in_a_block(void **state) {
  (void)state;
  int64_t starts[3] = {0, 100, 200}, index[3] = {0, 1, 0};
  tn_type t = RIG_TYPE(TN_F32, 300), two = RIG_TYPE(TN_F32, 2), one = rig_type(TN_F64, 0, NULL);
  tn_type single = rig_type(TN_F32, 0, NULL);
  tn_spread_attributes s = {{3, starts}, {3, index}, 300};
  tn_cast_attributes to = {TN_F32};
  rig_start(&m);
  int32_t x = operand(t), lr = operand(two), decay = operand(two), beta = operand(one), step = operand(one);
  int32_t power = op1("cast", &to, op2("pow", beta, step, one), single);
  int32_t y = op2("mul", op1("spread", &s, lr, t), op1("spread", &s, decay, t), t);
  rig_out(&m, op2("sub", x, op2("mul", y, power, t), t));
  print(&m);
  assert_int_equal(count_of("i64 starts_"), 1);
  check_has("range_of(starts_0, 3, (i64)block)");
  assert_true(made.few_blocks);
  check_has("if (threadIdx.x == 0) {");
  assert_int_equal(count_of("  __shared__ "), 1);
  scaled(t, single, 2, 0);
  print(&m);
  assert_false(made.few_blocks);
}

/* ---- declined regions ---- */

static void check_declined(const tn_layout *layout, const char *reason) {
  lies = layout;
  rig_answer answer = rig_query(&looker, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_string_equal(answer.text, reason);
}

static void what_it_cannot_do_is_declined_with_a_reason(void **state) {
  (void)state;
  tn_layout blocks = tn_layout_row_major(4);
  tn_type x = RIG_TYPE(TN_F32, 2, 12, 4, 4);
  blocks.n_blocks = 1;
  blocks.block[0] = (tn_block){1, 8};
  rig_start(&m);
  rig_out(&m, op1("exp", NULL, operand(x), x));
  check_declined(&blocks, "the layout has padding, which this kernel would not keep zero");
  blocks.block[0] = (tn_block){1, 4};
  print_in(&m, &blocks);
  scaled(x, RIG_TYPE(TN_F32, 12, 1, 1), 1, 0);
  check_declined(&blocks, "regions with repeated operands are not done in blocks");
  static tn_affine_attributes a = {3, 4};
  rig_start(&m);
  int32_t y = operand(x);
  for (int32_t i = 0; i < 300; i++) y = op1("affine", &a, y, x);
  rig_out(&m, y);
  check_declined(NULL, "the region of 300 nodes needs 604 words of arguments, at most 480");
  rig_start(&m);
  operand(x);
  check_declined(NULL, "the region has no result");
}

/* Padded rows are walked with their padding, where results are zero. */
static void results_are_zero_behind_padded_rows(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 3, 5, 257), row = RIG_TYPE(TN_F32, 3, 5, 1), column = RIG_TYPE(TN_F32, 257);
  tn_layout rows = tn_layout_row_major(3);
  rows.n_blocks = 1;
  rows.block[0] = (tn_block){2, 64};
  scaled(x, row, 2, 0);
  print_in(&m, &rows);
  assert_int_equal(made.count, 3 * 5 * 320);
  check_has("if (column + k >= columns) y0.v[k] = f32();");
  rig_start(&m);
  rig_out(&m, op1("exp", NULL, operand(x), x));
  print_in(&m, &rows);
  check_has("if (column + k >= columns) y0.v[k] = f32();");
  print(&m);
  assert_int_equal(count_of("columns"), 0);
  scaled(x, column, 2, 0);
  check_declined(&rows, "the layout has padding, which this kernel would not keep zero");
  rows.block[0].size = 32;
  scaled(x, row, 2, 0);
  check_declined(&rows, "the layout has padding, which this kernel would not keep zero");
}

static void padded_rows_are_offered_where_rows_are_odd(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 5, 257), row = RIG_TYPE(TN_F32, 5, 1);
  scaled(x, row, 2, 0);
  rig_answer answer = rig_query_variant(&tn_kernel_cuda_pointwise, &m, 2);
  assert_int_equal(answer.n_variants, 2);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_FIXED);
  assert_int_equal(answer.in[0].layout.block[0].size, 64);
  assert_int_equal(answer.in[1].rule, TN_LAYOUT_ROW_MAJOR);
  x.dims[1] = 264;
  scaled(x, row, 2, 0);
  assert_int_equal(rig_query_variant(&tn_kernel_cuda_pointwise, &m, 1).n_variants, 1);
  x.dims[1] = 255; /* too short to pay */
  scaled(x, row, 2, 0);
  assert_int_equal(rig_query_variant(&tn_kernel_cuda_pointwise, &m, 1).n_variants, 1);
}

static void failing_allocations_are_told(void **state) {
  (void)state;
  lies = NULL;
  scaled(RIG_TYPE(TN_F32, 8, 16, 4, 4), RIG_TYPE(TN_F32, 16, 1, 1), 0.5, 3);
  rig_sweep_allocations(&looker, &m);
}

/* ---- the kernel ---- */

static void operands_of_one_layout_take_any_and_images_channels_last(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 2, 16, 4, 4);
  rig_start(&m);
  int32_t in = operand(x), single = operand(rig_type(TN_F32, 0, NULL));
  rig_out(&m, op2("add", in, single, x));
  rig_answer answer = rig_query(&tn_kernel_cuda_pointwise, &m);
  assert_int_equal(answer.n_variants, 1);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ANY);
  assert_int_equal(answer.in[1].rule, TN_LAYOUT_ROW_MAJOR);
  assert_int_equal(answer.out[0].rule, TN_LAYOUT_ANY);
  assert_true(answer.deterministic && answer.capturable);
  assert_int_equal(answer.n_inplace, 1);
  scaled(x, RIG_TYPE(TN_F32, 16, 1, 1), 1, 0);
  answer = rig_query_variant(&tn_kernel_cuda_pointwise, &m, 1);
  assert_int_equal(answer.n_variants, 2);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ROW_MAJOR);
  answer = rig_query_variant(&tn_kernel_cuda_pointwise, &m, 2);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_FIXED);
  assert_int_equal(answer.in[0].layout.order[3], 1);
  assert_int_equal(answer.in[1].rule, TN_LAYOUT_ROW_MAJOR);
  assert_int_equal(answer.n_inplace, 1);
}

/* Such as a cast in front of a convolution: the operand is read row-major, and no memory is shared. */
static void images_of_few_channels_may_be_written_with_channels_last(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 2, 3, 4, 4);
  rig_start(&m);
  rig_out(&m, op1("neg", NULL, operand(x), x));
  rig_answer answer = rig_query_variant(&tn_kernel_cuda_pointwise, &m, 1);
  assert_int_equal(answer.n_variants, 2);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ANY);
  answer = rig_query_variant(&tn_kernel_cuda_pointwise, &m, 2);
  assert_int_equal(answer.in[0].rule, TN_LAYOUT_ROW_MAJOR);
  assert_int_equal(answer.out[0].rule, TN_LAYOUT_FIXED);
  assert_int_equal(answer.out[0].layout.order[3], 1);
  assert_int_equal(answer.n_inplace, 0);
  x = RIG_TYPE(TN_F32, 2, 9, 4, 4);
  rig_start(&m);
  rig_out(&m, op1("neg", NULL, operand(x), x));
  assert_int_equal(rig_query(&tn_kernel_cuda_pointwise, &m).n_variants, 1);
}

/* ---- every op in every dtype compiles ---- */

static tn_cuda_libraries libraries;
static tn_cuda_compiler compiler;

static void open_compiler(void) {
  tn_env env = cuda_rig_env();
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 90, &compiler), TN_OK);
}

static void check_compiles(void) {
  char error[TN_CUDA_ERROR_TEXT] = "";
  tn_cuda_image image;
  if (tn_cuda_compile(&compiler, "region", text, &image, error) != TN_CUDA_COMPILED)
    fail_msg("%s: %s", error, text);
  assert_string_equal(error, "");
  free(image.bytes);
}

static void add_unary_and_binary(int32_t dtype) {
  static const char *const ones[] = {"exp",        "log", "sqrt",    "rsqrt", "sin", "cos", "tanh",
                                     "reciprocal", "erf", "sigmoid", "floor", "neg", "abs", "sign"};
  static const char *const twos[] = {"pow", "div", "add", "sub", "mul", "maximum", "minimum"};
  static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  bool whole = !tn_dtype_is_float(dtype);
  tn_type t = RIG_TYPE(dtype, 6, 10), b = RIG_TYPE(TN_BOOL, 6, 10);
  int32_t x = operand(t), y = operand(RIG_TYPE(dtype, 10));
  for (size_t i = whole ? 11 : 0; i < sizeof ones / sizeof *ones; i++) rig_out(&m, op1(ones[i], NULL, x, t));
  for (size_t i = whole ? 1 : 0; i < sizeof twos / sizeof *twos; i++) rig_out(&m, op2(twos[i], x, y, t));
  for (size_t i = 0; i < sizeof compares / sizeof *compares; i++) rig_out(&m, op2(compares[i], x, y, b));
  rig_out(&m, op1("is_finite", NULL, x, b));
}

static void add_casts(int32_t dtype) {
  static tn_cast_attributes to[TN_DTYPES];
  int32_t x = operand(RIG_TYPE(dtype, 6, 10)), bits[3] = {operand(RIG_TYPE(TN_BOOL, 6, 1)), x, x};
  tn_type t = RIG_TYPE(dtype, 6, 10), b = RIG_TYPE(TN_BOOL, 6, 10);
  for (int32_t i = TN_BOOL; i < TN_DTYPES; i++) {
    to[i].to = i;
    if (i != dtype) rig_out(&m, op1("cast", &to[i], x, RIG_TYPE(i, 6, 10)));
  }
  rig_out(&m, rig_node(&m, "where", NULL, bits, 3, &t, 1));
  rig_out(&m, op2("and", op2("or", bits[0], bits[0], b), op1("not", NULL, bits[0], b), b));
}

static void add_random(int32_t dtype) {
  static tn_random_attributes a;
  static tn_iota_attributes i;
  tn_type t = RIG_TYPE(dtype, 6, 10), row = RIG_TYPE(dtype, 10);
  static int64_t dims[2] = {6, 10};
  int32_t counters[2] = {operand(rig_type(TN_I64, 0, NULL)), operand(rig_type(TN_I64, 0, NULL))};
  a = (tn_random_attributes){{2, dims}, 5, 0, 1, dtype};
  i = (tn_iota_attributes){{2, dims}, 0, dtype};
  rig_out(&m, rig_node(&m, "random_uniform", &a, counters, 2, &t, 1));
  rig_out(&m, rig_node(&m, "random_normal", &a, counters, 1, &t, 1));
  int32_t drawn = rig_node(&m, "random_normal", &a, counters, 2, &row, 1);
  rig_out(&m, op2("add", drawn, rig_node(&m, "iota", &i, NULL, 0, &t, 1), t));
}

static void every_op_compiles_in_every_dtype(void **state) {
  (void)state;
  open_compiler();
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++)
    for (int32_t part = 0; part < 3; part++) {
      bool number = dtype != TN_BOOL, real = tn_dtype_is_float(dtype);
      if ((part == 0 && !number) || (part == 2 && !real)) continue;
      rig_start(&m);
      part == 0 ? add_unary_and_binary(dtype) : part == 1 ? add_casts(dtype) : add_random(dtype);
      print(&m);
      check_compiles();
    }
}

/* Walks, random numbers and ranges, which count positions. */
static void positions_of_64_bits_compile(void **state) {
  (void)state;
  int64_t starts[2] = {0, 5}, index[2] = {1, 0}, dims[2] = {1 << 19, 1 << 13};
  tn_type t = rig_type(TN_F32, 2, dims), scalar = rig_type(TN_I64, 0, NULL), row = RIG_TYPE(TN_F32, 1 << 13);
  tn_random_attributes a = {{2, dims}, 5, 0, 1, TN_F32};
  tn_spread_attributes s = {{2, starts}, {2, index}, 1 << 13};
  open_compiler();
  rig_start(&m);
  int32_t x = operand(t), part = operand(row), values = operand(RIG_TYPE(TN_F32, 2)),
          counter = operand(scalar);
  int32_t y = op2("add", x, rig_node(&m, "random_normal", &a, &counter, 1, &t, 1), t);
  y = op2("mul", y, op1("spread", &s, values, row), t);
  rig_out(&m, op2("sub", y, part, t));
  print(&m);
  check_has("typedef i64 at_t;");
  check_compiles();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(regions_that_differ_in_sizes_and_numbers_have_one_text),
      cmocka_unit_test(regions_that_differ_in_structure_have_different_texts),
      cmocka_unit_test(threads_take_16_bytes_of_the_narrowest_operand),
      cmocka_unit_test(many_operands_make_threads_take_less),
      cmocka_unit_test(channels_that_come_last_are_read_by_packs),
      cmocka_unit_test(channels_in_front_are_read_once_by_a_thread),
      cmocka_unit_test(operands_that_repeat_alike_share_a_walk),
      cmocka_unit_test(quotients_are_exact),
      cmocka_unit_test(positions_beyond_31_bits_have_64),
      cmocka_unit_test(streams_share_a_text),
      cmocka_unit_test(updates_share_tables_and_do_powers_once_in_a_block),
      cmocka_unit_test(what_it_cannot_do_is_declined_with_a_reason),
      cmocka_unit_test(results_are_zero_behind_padded_rows),
      cmocka_unit_test(padded_rows_are_offered_where_rows_are_odd),
      cmocka_unit_test(failing_allocations_are_told),
      cmocka_unit_test(operands_of_one_layout_take_any_and_images_channels_last),
      cmocka_unit_test(images_of_few_channels_may_be_written_with_channels_last),
      cmocka_unit_test(every_op_compiles_in_every_dtype),
      cmocka_unit_test(positions_of_64_bits_compile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
