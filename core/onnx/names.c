/* core/onnx/names.c: names of lines and paths of parameters, after the names in the file. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/import.h"

/* "layer1" in front of "layer1.0": exporters repeat the path of a module in that of its parts. */
static bool name_repeats(const char *part, size_t n, const char *next) {
  return strncmp(part, next, n) == 0 && (next[n] == '.' || next[n] == '/' || next[n] == '\0');
}

/* A part between dots is a word or all digits; other characters become _. */
static void name_add_part(tn_text *text, const char *part, size_t n) {
  size_t digits = 0;
  while (digits < n && isdigit((unsigned char)part[digits])) digits++;
  if (n == 0) return;
  if (text->n > 0) tn_text_add(text, ".");
  if (digits > 0 && digits < n) tn_text_add(text, "x");
  for (size_t i = 0; i < n; i++) {
    bool plain = isalnum((unsigned char)part[i]) || part[i] == '_';
    tn_text_addn(text, plain ? &part[i] : "_", 1);
  }
}

static void name_add(tn_text *text, const char *part, size_t n) {
  for (size_t at = 0; at < n;) {
    size_t length = strcspn(part + at, ".");
    if (length > n - at) length = n - at;
    name_add_part(text, part + at, length);
    at += length + 1;
  }
}

bool onnx_is_taken(const char *name) {
  static const char *const words[] = {"in", "data", "if", "else", "and", "or", "not", "op", "dim", "dims"};
  size_t n = strcspn(name, ".");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == n && strncmp(words[i], name, n) == 0) return true;
  return false;
}

const char *onnx_tidy(onnx_import *m, const char *text) {
  tn_text tidy = tn_text_new(m->env);
  for (const char *at = text + strspn(text, "/"); *at != '\0';) {
    size_t n = strcspn(at, "/");
    const char *next = at + n + strspn(at + n, "/");
    if (*next == '\0' || !name_repeats(at, n, next)) name_add(&tidy, at, n);
    at = next;
  }
  bool taken = tidy.v == NULL || isdigit((unsigned char)tidy.v[0]) || onnx_is_taken(tidy.v);
  const char *name = tn_arena_printf(&m->arena, "%s%s", taken ? "x_" : "", tidy.v != NULL ? tidy.v : "");
  tn_text_free(&tidy);
  return name;
}

/* The next number behind a name; 0: out of memory. */
static int32_t name_next(onnx_import *m, const char *name) {
  int64_t i = tn_name_index_find(&m->stems, name);
  if (i != TN_NAME_INDEX_NONE) return ++m->numbers.v[i];
  if (tn_name_index_add(&m->stems, name) != TN_OK || tn_vec_push(m->env, &m->numbers, 2) != TN_OK) return 0;
  return 2;
}

const char *onnx_unused(onnx_import *m, const char *name) {
  if (name == NULL || tn_growing_type(m->model, name) == NULL) return name;
  const char *dot = strrchr(name, '.');
  const char *link =
      dot != NULL && isdigit((unsigned char)dot[1]) ? ".x" : "_"; /* a part is a word or all digits */
  for (;;) {
    int32_t number = name_next(m, name);
    const char *other = number > 0 ? tn_arena_printf(&m->arena, "%s%s%d", name, link, number) : NULL;
    if (other == NULL || tn_growing_type(m->model, other) == NULL) return other;
  }
}

static const char *name_lower(onnx_import *m, const char *text) {
  char *low = tn_arena_strdup(&m->arena, text);
  for (char *c = low; c != NULL && *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
  return low;
}

/* "/layer1/relu/Relu_1": a module, and the operator with its number. False: the name has another form. */
static bool name_split(const onnx_use *n, const char **module, const char **operation) {
  const char *name = n->node->name, *last = strrchr(name, '/');
  if (onnx_read_modules(n->m, n->node, module, operation)) return true;
  if (last == NULL || !tn_text_starts(last + 1, n->node->op)) return false;
  *module = tn_arena_printf(&n->m->arena, "%.*s", (int)(last - name), name);
  *operation = name_lower(n->m, last + 1);
  return true;
}

/* Whether another line will have the name: the file has a weight of such a module. */
static bool name_is_of_weight(const onnx_use *n, const char *name) {
  const char *weight = tn_arena_printf(&n->m->arena, "%s.weight", name);
  return weight != NULL && onnx_find(n->m, weight) != NULL;
}

/* The name of the module, or where another line has it, that of the operator in the module:
 * "layer1.relu.relu_1". */
static const char *name_of_node(const onnx_use *n, bool has_weights) {
  onnx_import *m = n->m;
  const char *module = n->node->name, *operation = NULL;
  bool split = name_split(n, &module, &operation);
  if (split && (module == NULL || operation == NULL)) return NULL;
  if (module[0] == '\0' || strstr(module, "::") != NULL)
    module = split ? operation : name_lower(m, onnx_print(n, "%s_%lld", n->node->op, (long long)n->number));
  const char *name = module != NULL ? onnx_tidy(m, module) : NULL;
  bool of_other = name != NULL && !has_weights && name_is_of_weight(n, name);
  bool free = name == NULL || (tn_growing_type(m->model, name) == NULL && !of_other);
  if (free || !split || module == operation) return name != NULL ? onnx_unused(m, name) : NULL;
  return onnx_unused(m, onnx_print(n, "%s.%s", name, operation));
}

const char *onnx_name(const onnx_use *n) { return name_of_node(n, false); }

/* "layer1.0.conv1" of "layer1.0.conv1.weight"; NULL: the name of the tensor does not end so. */
static const char *path_of_tensor(const onnx_use *n, const onnx_layer_weight *w) {
  const char *from = onnx_find(n->m, w->from)->tensor->name;
  if (strstr(from, "::") != NULL) return NULL;
  size_t all = strlen(from), end = strlen(w->name);
  if (all <= end + 1 || strcmp(from + all - end, w->name) != 0 || from[all - end - 1] != '.') return NULL;
  const char *path = tn_arena_printf(&n->m->arena, "%.*s", (int)(all - end - 1), from);
  return path != NULL ? onnx_tidy(n->m, path) : NULL;
}

/* Whether neither the path nor that of a parameter is the name of a line. */
static bool path_is_free(const onnx_use *n, const char *path, const onnx_layer_weight *weights,
                         int32_t count) {
  bool taken = tn_growing_type(n->m->model, path) != NULL;
  for (int32_t i = 0; i < count && !taken; i++) {
    const char *own = tn_arena_printf(&n->m->arena, "%s.%s", path, weights[i].name);
    taken = own == NULL || tn_growing_type(n->m->model, own) != NULL;
  }
  return !taken;
}

const char *onnx_path(const onnx_use *n, const onnx_layer_weight *weights, int32_t n_weights) {
  for (int32_t i = 0; i < n_weights; i++) {
    const char *path = path_of_tensor(n, &weights[i]);
    if (path != NULL && path_is_free(n, path, weights, n_weights)) return path;
  }
  return name_of_node(n, true);
}

size_t onnx_name_length(const char *text) {
  size_t n = 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_' ||
         (n > 0 && text[n] == '.' && (isalnum((unsigned char)text[n + 1]) || text[n + 1] == '_')))
    n++;
  return n;
}
