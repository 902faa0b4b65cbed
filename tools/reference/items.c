/* tools/reference/items.c: pages of the items of a kind. */
#include <string.h>

#include "tools/reference/op_function.h"
#include "tools/reference/reference.h"

const reference_page reference_pages[] = {
    {"layers", "Layers", "layer", "layer", "model", "Shapes",
     "A layer is a line of `[model] layers`. Options follow in parentheses, by position or by name: "
     "`conv2d(16, 3)` is `conv2d(16, kernel=3)`. A layer with parameters has a name in front: `conv1: "
     "conv2d(16)`. N is the batch, which `inputs` leaves out. Shapes, names and initial values of parameters "
     "are PyTorch's. Every [op](ops.md) is a layer, too: activations such as `relu`, `gelu(tanh)` and "
     "`softmax`, arithmetic, functions."},
    {"losses", "Losses", "layer", "loss", "model", "Shapes",
     "Losses stand in `[model] loss`, a line each, and training minimizes their sum; in the line `aux: "
     "mse(weight=0.3) <- fc2, y`, `aux` is the name and 0.3 the factor in the sum. Without `<-` the inputs "
     "are the model's output and its first target. A loss is the weighted mean over elements, micro-batches "
     "and devices."},
    {"metrics", "Metrics", "layer", "metric", "model", "Shapes",
     "Metrics stand in `[model] metrics` and are reported beside the loss, of training and of validation. "
     "`tenon eval RUN --classes` adds precision, recall, F1, AUC and the confusion matrix."},
    {"optimizers", "Optimizers", "optimizer", NULL, NULL, NULL,
     "`[optimizer] type` names the optimizer, and its options are keys of the same section, beside those in "
     "[sections.md](sections.md#optimizer). A section `[group.NAME]` gives some parameters other values."},
    {"schedules", "Schedules", "schedule", NULL, NULL, NULL,
     "`[schedule] type` names the schedule, a factor of the optimizer's `lr`, and its options are keys of "
     "the same section. `warmup = N` multiplies each with a rise over N steps. [schedule.OPTION] is the "
     "schedule of another option."},
    {"sources", "Sources", "source", NULL, "data", "Fields",
     "`[data] source` names the source of the samples, and its options are keys of the same section. "
     "`[model] inputs` and `targets` use the names of its fields."},
    {"transforms", "Transforms", "transform", NULL, "data", "Fields",
     "`[data] transforms` lists the transforms of a sample, in their order. Each changes the first input, "
     "unless `<- FIELD, ...` names others. Validation is without those that are for training only."},
    {"initializers", "Initializers", "initializer", NULL, NULL, NULL,
     "An initializer gives the first values of a parameter, as option `init` of a layer. `default` is that "
     "of the layer, which is PyTorch's. fan_in is dims[1], fan_out dims[0], each times the size of the "
     "kernel."},
    {"precision", "Precision policies", "precision", NULL, NULL, NULL,
     "`[precision] policy` names the policy that chooses the types in which ops work, and its options are "
     "keys of the same section. Parameters and optimizer state stay f32."},
    {"observers", "Observers", "observer", NULL, NULL, NULL,
     "`[run] observers` adds observers of a run, `-NAME` takes one away. Their options stand in "
     "`[observer.NAME]`. `progress` is active without being named, in runs of the program `tenon`."},
    {"backends", "Backends", "backend", NULL, NULL, NULL,
     "`[backend] use` names the backends in order of preference. Their options stand in `[backend.NAME]`."},
    {"communicators", "Communicators", "communicator", NULL, NULL, NULL,
     "`[distributed] communicator` names the collectives between the devices of a run. The backend `cpu` has "
     "one device."},
    {"ops", "Ops", "op", NULL, NULL, NULL,
     "Ops are lines of `[model] layers`, too, and calls of layers, optimizers and models that are written in "
     "C (`tenon/build.h`, `tenon/ops.h`). The schema has operands, results and the dtypes of each: `?` marks "
     "an operand that may be absent. `u8 i8 as i32`: operands of u8 and i8 are cast to i32, and results of "
     "the same letter back."},
    {0}};

bool reference_page_has(const reference_page *page, const json_t *item) {
  const char *role = cli_text(item, "role");
  return strcmp(cli_text(item, "kind"), page->kind) == 0 &&
         (page->role == NULL || (role != NULL && strcmp(role, page->role) == 0));
}

/* "3 inputs" of a layer, where there is not one. */
static void items_write_inputs(FILE *to, const json_t *item) {
  long long least = cli_integer(item, "min_in"), most = cli_integer(item, "max_in");
  if (json_object_get(item, "min_in") == NULL || (least == 1 && most == 1)) return;
  if (most < 0)
    fprintf(to, "\nInputs: %lld or more.\n", least);
  else if (least == most)
    fprintf(to, "\nInputs: %lld.\n", least);
  else
    fprintf(to, "\nInputs: %lld to %lld.\n", least, most);
}

static void items_write_code(FILE *to, const char *title, const char *text) {
  if (text != NULL) fprintf(to, "\n%s: `%s`\n", title, text);
}

/* The C function of an op. */
static void items_write_function(FILE *to, const json_t *item) {
  op_function function;
  if (strcmp(cli_text(item, "kind"), "op") != 0) return;
  op_function_read(item, &function);
  fprintf(to, "\nIn C: `");
  op_function_write_head(to, &function, "", 0);
  fprintf(to, "`\n");
}

static void items_write_notes(FILE *to, const char *notes) {
  if (notes == NULL) return;
  fprintf(to, "\n");
  reference_write_text(to, notes);
  fprintf(to, "\n");
}

static void items_write_item(FILE *to, const reference_page *page, const json_t *item) {
  const char *types = cli_text(item, "types");
  fprintf(to, "\n## %s\n\n", cli_text(item, "name"));
  reference_write_text(to, cli_text(item, "doc"));
  fprintf(to, "\n");
  items_write_notes(to, cli_text(item, "notes"));
  items_write_code(to, "Schema", cli_text(item, "schema"));
  items_write_code(to, "Formula", cli_text(item, "formula"));
  items_write_code(to, "Gradient", cli_text(item, "gradient"));
  items_write_code(to, "Operands", cli_text(item, "domain"));
  items_write_code(to, "In PyTorch and ONNX", cli_text(item, "aliases"));
  items_write_function(to, item);
  items_write_inputs(to, item);
  if (types != NULL) {
    fprintf(to, "\n%s: ", page->types);
    reference_write_text(to, types);
    fprintf(to, ".\n");
  }
  reference_write_options(to, json_object_get(item, "options"), "option");
  reference_write_example(to, page, item);
}

void reference_write_items(FILE *to, const reference_page *page, const json_t *items) {
  const json_t *item;
  size_t i;
  reference_write_head(to, page->title, page->intro);
  json_array_foreach(items, i, item) if (reference_page_has(page, item)) items_write_item(to, page, item);
}
