/* tests/attack/families/hostile_plugin.c: a plugin whose descriptors say what the variable ATTACK_DESCRIPTOR
 * draws: sizes, offsets, counts, NULL, texts without an end in sight, types that no op has. A few parts are
 * spoiled at a time, so that the host comes past its first check. Pointers are valid: a plugin with invalid
 * ones is in the process already. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin/layer.h>
#include <tenon/plugin/op.h>
#include <tenon/plugin/optimizer.h>
#include <tenon/plugin/schedule.h>

typedef struct hostile_options {
  double a;
  int64_t n;
  const char *text;
  tn_ints list;
  int32_t choice;
} hostile_options;

/* The table has an end within any stride that is a multiple of the row's. */
enum { ROWS = 6, LONG = 3000000, ITEMS = 5000 };

static char long_text[LONG];
static uint64_t state;

static uint64_t hostile_draw(uint64_t most) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % most;
}

#define PICK(list) ((list)[hostile_draw(sizeof(list) / sizeof *(list))])

static uint32_t hostile_number(void) {
  static const uint32_t numbers[] = {
      0,   1,    2,     3,       4,       7,          8,          16,         24,         40,        99,
      777, 4096, 65536, 1 << 20, 1 << 21, 0x7fffffff, 0x80000000, 0xfffffff0, 0xfffffffc, 0xffffffff};
  return PICK(numbers);
}

/* `part` so often that it has `bytes` bytes, between two others. */
static const char *hostile_repeat(const char *before, const char *part, size_t bytes, const char *behind) {
  size_t n = strlen(before), step = strlen(part);
  strcpy(long_text, before);
  for (; n + step < bytes && n + step < LONG - 64; n += step) memcpy(long_text + n, part, step);
  strcpy(long_text + n, behind);
  return long_text;
}

static const char *hostile_text(void) {
  static const char *const texts[] = {NULL,
                                      "",
                                      "1",
                                      "x",
                                      "-1",
                                      "1e999",
                                      "nan",
                                      "a|b",
                                      "|||||",
                                      "[[[[",
                                      "> 5",
                                      "[0, ",
                                      "a b\033[31m=\n",
                                      "a/../../b",
                                      "%s%n",
                                      "relu",
                                      "normal(((((((",
                                      "[1, 2, 3]",
                                      "\xff\xfe"};
  uint64_t way = hostile_draw(10);
  if (way == 0) return hostile_repeat("", "A", hostile_draw(2) != 0 ? 200 : LONG, "");
  if (way == 1) return hostile_repeat("", "[", 100000, "");
  return PICK(texts);
}

/* Lengths of formulas: some have many terms, some nest deep. */
static const char *hostile_formula(void) {
  static const char *const short_ones[] = {"",
                                           "y = x",
                                           "y = nosuch(x, x, x)",
                                           "y = sum(x)",
                                           "y = exp(x)^1e308*0/0",
                                           "y = x*a",
                                           "y = 1e99999999999999999999 * x",
                                           "y = x if",
                                           "z = x",
                                           "y = y",
                                           "w = x; w = x; y = w",
                                           "w = x;;;; y = w",
                                           "y = leaky_relu(x, slope=x)",
                                           "y = leaky_relu(x, slope=slope=slope=1)",
                                           "y = nan if whole else largest * inf",
                                           "y = x x"};
  static const size_t sizes[] = {100, 1000, 3000, 20000, 200000, LONG};
  size_t bytes = PICK(sizes);
  switch (hostile_draw(10)) {
  case 0: return hostile_repeat("y = ", "(", bytes, "x");
  case 1: return hostile_repeat("y = x", "+x", bytes, "");
  case 2: return hostile_repeat("y = ", "-", bytes, "x");
  case 3: return hostile_repeat("y = x", "^x", bytes, "");
  case 4: return hostile_repeat("y = ", "x if x<0 else ", bytes, "x");
  case 5: return hostile_repeat("y = ", "not ", bytes, "x");
  case 6: return hostile_repeat("y = x", "*exp(x)", bytes, "");
  case 7: return hostile_repeat("y = ", "exp(", bytes, "x");
  case 8: return hostile_repeat("", "w = x; ", bytes, "y = w");
  default: return PICK(short_ones);
  }
}

static const char *hostile_schema(void) {
  static const char *const schemas[] = {"",
                                        NULL,
                                        "(x:T) -> (y:T)",
                                        "(x:T, rest*:T, more*:T) -> (y:T); T in f32",
                                        "(x:T) -> (y:U); T in f32",
                                        "(x:T) -> (); T in f32",
                                        "() -> (y:f32)",
                                        "(x:T) -> (y:T); T in nothing",
                                        "(x:T) -> (y:any); T in f32",
                                        "(x?:T) -> (y:T); T in f32",
                                        "(((((((",
                                        "(x:T, x:T) -> (x:T); T in f32"};
  if (hostile_draw(6) == 0)
    return hostile_repeat("(x:T", ", x:T", hostile_draw(2) != 0 ? 400 : 100000, ") -> (y:T); T in f32");
  return PICK(schemas);
}

/* ---- callbacks that lie ---- */

static tn_status infer_rank(tn_infer *n) {
  n->node.out[0].rank = (int32_t)hostile_number();
  return TN_OK;
}

static tn_status infer_dims(tn_infer *n) {
  static const int64_t dims[] = {-5, 0, 1, INT64_MAX, 1LL << 62, 1LL << 32};
  n->node.out[0] = *n->node.in[0];
  n->node.out[0].rank = 4;
  for (int i = 0; i < 4; i++) n->node.out[0].dims[i] = PICK(dims);
  return TN_OK;
}

static tn_status infer_dtype(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  n->node.out[0].dtype = (int32_t)hostile_number();
  return TN_OK;
}

/* Without a message. A status that does not exist counts as a defect of the host, with exit code 70. */
static tn_status infer_error(tn_infer *n) {
  static const tn_status statuses[] = {TN_EINVAL, TN_ENOMEM,     TN_EUNSUPPORTED,
                                       TN_EIO,    TN_ENONFINITE, TN_ESTOPPED};
  (void)n;
  return PICK(statuses);
}

static double hostile_factor_value = 1;

static double hostile_factor(const void *options, const tn_schedule_at *at) {
  (void)options, (void)at;
  return hostile_factor_value;
}

static int hostile_layer_lies;

static tn_status hostile_build(tn_build *b, const void *options) {
  (void)options;
  if (!hostile_layer_lies)
    tn_build_yield(b, 0, tn_build_in(b, 0));
  else
    tn_build_yield(b, (int32_t)hostile_draw(4), tn_build_in(b, (int32_t)hostile_draw(4) - 1));
  return TN_OK;
}

/* ---- the descriptors ---- */

#define ROW(name, type, field, text, range)                                                                  \
  {                                                                                                          \
#name, type, 0, (uint32_t)offsetof(hostile_options, field), TN_OPT_FIELD_BYTES(hostile_options, field),  \
        text, range, "an option"                                                                             \
  }
static tn_option rows[ROWS + 1] = {ROW(a, TN_OPT_FLOAT, a, "1", NULL), ROW(n, TN_OPT_INT, n, "1", NULL),
                                   ROW(text, TN_OPT_TEXT, text, "x", NULL),
                                   ROW(list, TN_OPT_INTS, list, "[1]", NULL),
                                   ROW(choice, TN_OPT_ENUM, choice, "a", "a|b")};
static tn_op op = {.item = TN_ITEM(tn_op, TN_OP, "hostile", "an op", hostile_options, rows),
                   .schema = "(x:T) -> (y:T); T in f16 bf16 f32 f64",
                   .op_class = TN_CLASS_POINTWISE,
                   .formula = "y = x * a"};
static tn_layer_kind layer = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "hostile_layer", "a layer", hostile_options, rows),
    .min_in = 1,
    .max_in = 1,
    .build = hostile_build};
static tn_schedule schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "hostile_schedule", "a schedule", hostile_options, rows),
    .factor = hostile_factor};
static const tn_item *items[ITEMS + 1] = {&op.item, &layer.item, &schedule.item};
static tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "hostile", "1", "MIT",
                           TN_BUILD_TEXT,     items};

static void spoil_row(void) {
  tn_option *row = &rows[hostile_draw(ROWS - 1)];
  switch (hostile_draw(7)) {
  case 0: row->type = hostile_draw(2) != 0 ? (uint32_t)hostile_draw(16) : hostile_number(); break;
  case 1: row->flags = hostile_number(); break;
  case 2: row->offset = hostile_draw(2) != 0 ? (uint32_t)hostile_draw(64) : hostile_number(); break;
  case 3: row->bytes = hostile_number(); break;
  case 4: row->default_text = hostile_text(); break;
  case 5: row->range = hostile_text(); break;
  default: row->name = hostile_text(); break;
  }
}

static void spoil_item(void) {
  tn_item *const all[] = {&op.item, &layer.item, &schedule.item};
  static const uint32_t strides[] = {0, 1, 7, 8, 0x7fffffff, 0x80000000, 0xffffffff, 5000};
  tn_item *item = PICK(all);
  switch (hostile_draw(7)) {
  case 0: item->struct_size = hostile_number(); break;
  case 1: item->kind = hostile_draw(2) != 0 ? 12 + (uint32_t)hostile_draw(3) : hostile_number() & ~15u; break;
  case 2: item->name = hostile_text(); break;
  case 3: item->doc = hostile_text(); break;
  case 4: item->option_stride = PICK(strides); break;
  case 5: item->options_bytes = hostile_number(); break;
  default: item->options = NULL; break;
  }
}

static void spoil_op(void) {
  static tn_status (*const infers[])(tn_infer *) = {infer_rank, infer_dims, infer_dtype, infer_error};
  switch (hostile_draw(6)) {
  case 0: op.schema = hostile_schema(); break;
  case 1: op.op_class = hostile_number(); break;
  case 2: op.flags = hostile_number(); break;
  case 3: op.domain = hostile_text(); break;
  case 4:
    op.formula = hostile_formula(), op.gradient = hostile_draw(3) == 0 ? hostile_formula() : NULL;
    break;
  default: op.formula = NULL; op.infer = PICK(infers);
  }
}

static void spoil_layer(void) {
  static const double factors[] = {0, -1, 1e300, 1e-300, 1e39, NAN, INFINITY};
  switch (hostile_draw(7)) {
  case 5: hostile_layer_lies = 1; break;
  case 6: hostile_factor_value = PICK(factors); break;
  case 0: layer.min_in = (int32_t)hostile_number(); break;
  case 1: layer.max_in = (int32_t)hostile_number(); break;
  case 2: layer.role = hostile_number(); break;
  case 3: layer.of_mean = hostile_number(); break;
  default: layer.build = NULL; break;
  }
}

static void spoil_plugin(void) {
  switch (hostile_draw(8)) {
  case 0: plugin.struct_size = hostile_number(); break;
  case 1: plugin.major = (uint16_t)hostile_number(); break;
  case 2: plugin.minor = (uint16_t)hostile_number(); break;
  case 3:
    plugin.requires
    = hostile_number();
    break;
  case 4: plugin.name = hostile_text(); break;
  case 5: plugin.build = hostile_text(); break;
  case 6: plugin.items = NULL; break;
  default:
    for (int i = 0; i < ITEMS; i++) items[i] = &op.item;
  }
}

TN_PLUGIN_ENTRY(hostile);
TN_PLUGIN_ENTRY(hostile) {
  static void (*const spoils[])(void) = {spoil_row, spoil_row,   spoil_item,  spoil_op,
                                         spoil_op,  spoil_layer, spoil_plugin};
  const char *seed = getenv("ATTACK_DESCRIPTOR");
  if (seed == NULL || state != 0) return &plugin;
  state = strtoull(seed, NULL, 10);
  for (uint64_t n = 1 + hostile_draw(3); n > 0; n--) PICK(spoils)();
  return hostile_draw(50) == 0 ? NULL : &plugin;
}
