/* tools/init/arrays.c: the configuration for arrays in files: which are inputs and targets, by their names,
 * and a model for them, by their shapes. */
#include <ctype.h>
#include <string.h>

#include "tools/init/array_files.h"
#include "tools/init/init.h"

enum { PARTS = 3, FIELDS = 16 };
enum { TASK_CLASSES = 0, TASK_MASKS = 1, TASK_LABELS = 2, TASK_NUMBERS = 3 };

typedef struct arrays_plan {
  const array_look *inputs[FIELDS], *targets[FIELDS]; /* of training */
  const array_look *valid[2 * FIELDS];                /* inputs, then targets, or NULL */
  char names[2 * FIELDS][ARRAYS_NAME];                /* of the fields */
  int n_inputs, n_targets, task;
  bool has_valid;
  long long rows;
} arrays_plan;

/* ---- names ---- */

static const char *const arrays_parts[] = {"train", "valid", "val", "test", "dev"};
enum { ARRAYS_PARTS = sizeof arrays_parts / sizeof *arrays_parts };

/* The field of an array, its name without "train_" in front or "_test" behind. Returns the number of the
 * part; 0 where none is named. */
static int arrays_field_name(const char *name, char field[ARRAYS_NAME]) {
  snprintf(field, ARRAYS_NAME, "%s", name);
  for (int i = 0; i < ARRAYS_PARTS; i++) {
    size_t n = strlen(arrays_parts[i]), all = strlen(name);
    if (all > n + 1 && strncasecmp(name, arrays_parts[i], n) == 0 && name[n] == '_') {
      snprintf(field, ARRAYS_NAME, "%s", name + n + 1);
      return i;
    }
    if (all > n + 1 && strcasecmp(name + all - n, arrays_parts[i]) == 0 && name[all - n - 1] == '_') {
      field[all - n - 1] = '\0';
      return i;
    }
  }
  return 0;
}

static void arrays_clean_name(char *name) {
  for (char *c = name; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
}

static bool arrays_is_target_name(const char *name) {
  static const char *const words[] = {"y",    "t",     "label",      "target",
                                      "mask", "class", "annotation", "segmentation"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    const char *rest = name + n;
    if (strncasecmp(name, words[i], n) == 0 &&
        (*rest == '\0' || *rest == '_' || strcasecmp(rest, "s") == 0 || strcasecmp(rest, "es") == 0))
      return true;
  }
  return false;
}

/* ---- roles ---- */

static const array_look *arrays_find_valid(const array_looks *all, const char *field) {
  for (int part = 1; part < ARRAYS_PARTS; part++)
    for (int i = 0; i < all->n; i++) {
      char name[ARRAYS_NAME];
      if (arrays_field_name(all->v[i].name, name) == part && strcmp(name, field) == 0) return &all->v[i];
    }
  return NULL;
}

/* Fields of training with as many rows as the first one. */
static void arrays_divide(const array_looks *all, arrays_plan *p) {
  for (int i = 0; i < all->n; i++) {
    const array_look *a = &all->v[i];
    char field[ARRAYS_NAME];
    if (arrays_field_name(a->name, field) != 0 || (p->rows > 0 && a->dims[0] != p->rows)) continue;
    p->rows = a->dims[0];
    bool target = arrays_is_target_name(field) && p->n_targets < FIELDS;
    if (target)
      p->targets[p->n_targets++] = a;
    else if (p->n_inputs < FIELDS)
      p->inputs[p->n_inputs++] = a;
  }
  p->has_valid = p->n_inputs + p->n_targets > 0;
  for (int i = 0; i < p->n_inputs + p->n_targets; i++) {
    const array_look *a = i < p->n_inputs ? p->inputs[i] : p->targets[i - p->n_inputs];
    char field[ARRAYS_NAME];
    arrays_field_name(a->name, field);
    p->valid[i] = arrays_find_valid(all, field);
    p->has_valid = p->has_valid && p->valid[i] != NULL;
    arrays_clean_name(field);
    snprintf(p->names[i], ARRAYS_NAME, "%s", field);
  }
}

static long long arrays_numbers(const array_look *a) {
  long long n = 1;
  for (int i = 1; i < a->rank; i++) n *= a->dims[i];
  return n;
}

/* Height and width of rows of pictures; false: the rows have another shape. */
static bool arrays_picture(const array_look *a, long long *channels, long long *height, long long *width) {
  if (a->rank == 3 && a->dims[1] >= 8 && a->dims[2] >= 8) {
    *channels = 1, *height = a->dims[1], *width = a->dims[2];
    return true;
  }
  bool is = a->rank == 4 && a->dims[1] <= 4 && a->dims[2] >= 8 && a->dims[3] >= 8;
  *channels = a->dims[1], *height = a->dims[2], *width = a->dims[3];
  return is;
}

static bool arrays_is_whole(const array_look *a) { return a->kind != 'f'; }

static int arrays_find_task(const arrays_plan *p) {
  const array_look *t = p->targets[0];
  long long c, h, w;
  if (!arrays_is_whole(t)) return TASK_NUMBERS;
  if (arrays_numbers(t) == 1) return TASK_CLASSES;
  if (t->rank == 3 && arrays_picture(p->inputs[0], &c, &h, &w) && t->dims[1] == h && t->dims[2] == w)
    return TASK_MASKS;
  return t->rank == 2 && t->greatest <= 1 ? TASK_LABELS : TASK_NUMBERS;
}

static long long arrays_outputs(const arrays_plan *p) {
  const array_look *t = p->targets[0];
  if (p->task != TASK_CLASSES && p->task != TASK_MASKS) return arrays_numbers(t);
  return t->greatest >= 1 ? t->greatest + 1 : 2;
}

/* ---- writing ---- */

/* "[3, 32, 32]" of a row; pictures get a dimension of channels. */
static void arrays_dims(const array_look *a, bool input, char text[128]) {
  long long c, h, w;
  size_t n = 1;
  snprintf(text, 128, "[");
  if (input && a->rank == 3 && arrays_picture(a, &c, &h, &w)) n += (size_t)snprintf(text + n, 128 - n, "1, ");
  for (int i = 1; i < a->rank && n < 100; i++)
    n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i > 1 ? ", " : "", a->dims[i]);
  snprintf(text + n, 128 - n, "]");
}

/* Bytes of pictures stay bytes, for the transform to_float; other numbers are read as f32. */
static bool arrays_stays_bytes(const array_look *a) {
  long long c, h, w;
  return a->kind == 'u' && a->size == 1 && arrays_picture(a, &c, &h, &w);
}

static void arrays_write_field(FILE *to, const arrays_plan *p, int i, const array_look *a) {
  bool input = i < p->n_inputs, whole = p->task == TASK_CLASSES || p->task == TASK_MASKS;
  char dims[128], as[160] = "";
  arrays_dims(a, input, dims);
  if (!input && whole && a->rank > 1 && arrays_numbers(a) == 1) snprintf(dims, sizeof dims, "[]");
  if (input && arrays_stays_bytes(a))
    snprintf(as, sizeof as, " as u8%s", dims);
  else if (input || !whole || i > p->n_inputs)
    snprintf(as, sizeof as, " as f32%s", a->rank == 1 ? "[1]" : dims);
  else if (a->rank > 1 && arrays_numbers(a) == 1)
    snprintf(as, sizeof as, " as i32[]");
  fprintf(to, "%s: %s%s", p->names[i], a->place, as);
  if (i == p->n_inputs && whole) fprintf(to, " 0..%lld", arrays_outputs(p) - 1);
}

static void arrays_write_fields(FILE *to, const arrays_plan *p, const char *key, int first, int n,
                                bool valid) {
  fprintf(to, "%s = ", key);
  for (int i = first; i < first + n; i++) {
    const array_look *a = i < p->n_inputs ? p->inputs[i] : p->targets[i - p->n_inputs];
    if (i > first) fprintf(to, ",\n    ");
    arrays_write_field(to, p, i, valid ? p->valid[i] : a);
  }
  fprintf(to, "\n");
}

static void arrays_write_types(FILE *to, const arrays_plan *p, const char *key, int first, int n) {
  fprintf(to, "%s = ", key);
  for (int i = first; i < first + n; i++) {
    const array_look *a = i < p->n_inputs ? p->inputs[i] : p->targets[i - p->n_inputs];
    bool whole = i == p->n_inputs && (p->task == TASK_CLASSES || p->task == TASK_MASKS);
    char dims[128];
    arrays_dims(a, i < p->n_inputs, dims);
    if (a->rank == 1) snprintf(dims, sizeof dims, whole ? "[]" : "[1]");
    if (whole && arrays_numbers(a) == 1) snprintf(dims, sizeof dims, "[]");
    fprintf(to, "%s%s: %s%s", i > first ? ", " : "", p->names[i], whole ? "i32" : "f32", dims);
  }
  fprintf(to, "\n");
}

/* Convolutions for pictures alone. */
static void arrays_write_picture_layers(FILE *to, const arrays_plan *p) {
  fprintf(to, "    conv1: conv2d(16, kernel=3, padding=1)\n           relu\n"
              "    conv2: conv2d(32, kernel=3, padding=1)\n           relu\n");
  if (p->task == TASK_MASKS) {
    fprintf(to, "    head:  conv2d(%lld, kernel=1)\n", arrays_outputs(p));
    return;
  }
  fprintf(to,
          "           max_pool(2)\n    conv3: conv2d(64, kernel=3, padding=1)\n           relu\n"
          "           global_avg_pool\n    fc:    linear(%lld)\n",
          arrays_outputs(p));
}

static void arrays_write_layers(FILE *to, const arrays_plan *p) {
  long long c, h, w;
  fprintf(to, "layers =\n");
  if (p->n_inputs == 1 && arrays_picture(p->inputs[0], &c, &h, &w)) {
    arrays_write_picture_layers(to, p);
    return;
  }
  for (int i = 0; i < p->n_inputs; i++) fprintf(to, "    row%d: flatten <- %s\n", i + 1, p->names[i]);
  fprintf(to, "    all:  concat(axis=1) <- row1");
  for (int i = 1; i < p->n_inputs; i++) fprintf(to, ", row%d", i + 1);
  fprintf(to,
          "\n    fc1:  linear(64)\n          relu\n    fc2:  linear(64)\n          relu\n    head: "
          "linear(%lld)\n",
          arrays_outputs(p));
  const array_look *t = p->targets[0];
  if (p->task == TASK_NUMBERS && t->rank > 2) {
    char dims[128];
    arrays_dims(t, false, dims);
    fprintf(to, "          reshape(%s)\n", dims);
  }
}

static const char *const arrays_losses[] = {"cross_entropy", "cross_entropy(axis=1, ignore=255)",
                                            "binary_cross_entropy", "mse"};
static const char *const arrays_metrics[] = {"accuracy, f1", "mean_iou(ignore=255), dice(ignore=255)",
                                             "f1, auroc", "mae, r2"};

static void arrays_write(const init_file *f, const arrays_plan *p, init_choice *c) {
  int all = p->n_inputs + p->n_targets;
  bool bytes = false;
  *c = (init_choice){.side = p->rows, .batch = init_choose_batch(p->rows), .epochs = 30};
  fprintf(f->to,
          "# A first model for %lld rows. The first target is learnt.\n[run]\nname = %s\nepochs = %lld\n\n",
          p->rows, f->name, c->epochs);
  fprintf(f->to, "[data]\nsource = arrays\nfolder = %s\n", f->path);
  arrays_write_fields(f->to, p, "inputs", 0, p->n_inputs, false);
  arrays_write_fields(f->to, p, "targets", p->n_inputs, p->n_targets, false);
  if (p->has_valid)
    arrays_write_fields(f->to, p, "valid", 0, all, true);
  else if (p->rows >= 10)
    fprintf(f->to, "split = 0.1\n");
  fprintf(f->to, "batch = %lld\n", c->batch);
  for (int i = 0; i < p->n_inputs; i++) {
    if (!arrays_stays_bytes(p->inputs[i])) continue;
    fprintf(f->to, "%sto_float <- %s\n", bytes ? "    " : "transforms = ", p->names[i]);
    bytes = true;
  }
  fprintf(f->to, "\n[model]\n");
  arrays_write_types(f->to, p, "inputs", 0, p->n_inputs);
  arrays_write_types(f->to, p, "targets", p->n_inputs, p->n_targets);
  arrays_write_layers(f->to, p);
  fprintf(f->to, "loss = %s\nmetrics = %s\n", arrays_losses[p->task], arrays_metrics[p->task]);
  fprintf(f->to, "\n[optimizer]\ntype = adamw\nlr = 1e-3\n\n[schedule]\ntype = cosine\n");
}

int init_survey_arrays(const cli_args *args, const char *path, bool folder, array_looks *found) {
  arrays_plan plan = {.n_inputs = 0};
  int code = array_files_survey(args, path, folder, found);
  if (code != CLI_OK) return code;
  arrays_divide(found, &plan);
  if (plan.n_inputs > 0 && plan.n_targets > 0) return CLI_OK;
  return cli_refuse(
      args, CLI_DATA,
      "%s: has %d arrays of numbers, of which none is an input and a target by its name, expected one "
      "called y, label, target, mask or class beside others with as many rows",
      path, found->n);
}

void init_write_arrays(const init_file *file, const array_looks *found, init_choice *choice) {
  arrays_plan plan = {.n_inputs = 0};
  arrays_divide(found, &plan);
  plan.task = arrays_find_task(&plan);
  arrays_write(file, &plan, choice);
}
