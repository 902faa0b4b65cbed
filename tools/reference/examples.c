/* tools/reference/examples.c: uses of items, as lines of INI. */
#include <string.h>

#include "tools/reference/reference.h"

/* "name = default" of the first option whose default is not empty. */
static void examples_write_first(FILE *to, const json_t *item) {
  const json_t *option;
  size_t i;
  json_array_foreach(json_object_get(item, "options"), i, option) {
    const char *value = cli_text(option, "default");
    if (value == NULL || *value == '\0') continue;
    fprintf(to, "%s = %s\n", cli_text(option, "name"), value);
    return;
  }
}

/* [SECTION.NAME] with the first option of the item, if it has one. */
static void examples_write_own_section(FILE *to, const char *section, const json_t *item) {
  if (json_array_size(json_object_get(item, "options")) == 0) return;
  fprintf(to, "\n[%s.%s]\n", section, cli_text(item, "name"));
  examples_write_first(to, item);
}

static void examples_write_lines(FILE *to, const char *kind, const json_t *item, const char *example) {
  const char *name = cli_text(item, "name");
  if (strcmp(kind, "initializer") == 0)
    fprintf(to, "[model]\ninputs = x: f32[64]\nlayers = fc1: linear(10, init=%s)\n", example);
  else if (strcmp(kind, "schedule") == 0)
    fprintf(to, "[schedule]\ntype = %s\n%s%s", name, example ? example : "", example ? "\n" : "");
  else if (strcmp(kind, "optimizer") == 0)
    fprintf(to, "[optimizer]\ntype = %s\n", name), examples_write_first(to, item);
  else if (strcmp(kind, "precision") == 0)
    fprintf(to, "[precision]\npolicy = %s\n", name);
  else if (strcmp(kind, "communicator") == 0)
    fprintf(to, "[distributed]\ncommunicator = %s\n", name);
  else if (strcmp(kind, "observer") == 0)
    fprintf(to, "[run]\nobservers = %s\n", name), examples_write_own_section(to, "observer", item);
  else if (strcmp(kind, "backend") == 0)
    fprintf(to, "[backend]\nuse = %s%s\n", name, strcmp(name, "cpu") == 0 ? "" : ", cpu"),
        examples_write_own_section(to, "backend", item);
}

void reference_write_example(FILE *to, const reference_page *page, const json_t *item) {
  const char *example = cli_text(item, "example");
  if (strcmp(page->kind, "op") == 0 || (page->section != NULL && example == NULL)) return;
  fprintf(to, "\n```ini\n");
  if (page->section != NULL)
    fprintf(to, "[%s]\n%s\n", page->section, example);
  else
    examples_write_lines(to, page->kind, item, example);
  fprintf(to, "```\n");
}
