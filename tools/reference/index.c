/* tools/reference/index.c: README.md of the reference: every item and every key, with links. */
#include <ctype.h>

#include "tools/reference/reference.h"

static const char index_intro[] =
    "Every section, key, item and command. The pages are written by `tenon reference FOLDER` from the "
    "descriptors that the program itself reads, those of the plugins in the plugin folder and of `--plugin "
    "FILE` included. `tenon inspect NAME` and `tenon config explain KEY` print the same in a terminal.";

/* The anchor of a heading: small letters, digits, - and _; blanks become -. */
static void index_write_anchor(FILE *to, const char *heading) {
  for (; *heading; heading++) {
    if (*heading == ' ') fputc('-', to);
    if (isalnum((unsigned char)*heading) || *heading == '_' || *heading == '-')
      fputc(tolower((unsigned char)*heading), to);
  }
}

static void index_write_items(FILE *to, const reference_page *page, const json_t *items) {
  const json_t *item;
  size_t i;
  bool first = true;
  fprintf(to, "\n## [%s](%s.md)\n\n", page->title, page->file);
  json_array_foreach(items, i, item) {
    const char *name = cli_text(item, "name");
    if (!reference_page_has(page, item)) continue;
    fprintf(to, "%s[%s](%s.md#", first ? "" : ",\n", name, page->file);
    index_write_anchor(to, name);
    fprintf(to, ")");
    first = false;
  }
  fprintf(to, "\n");
}

static void index_write_sections(FILE *to, const json_t *sections) {
  const json_t *section, *key;
  size_t i, k;
  fprintf(to, "\n## [Sections and keys](sections.md)\n\n| section | keys |\n|---|---|\n");
  json_array_foreach(sections, i, section) {
    char title[64];
    const char *rest;
    reference_section_title(section, title, &rest);
    fprintf(to, "| [`%s`](sections.md#", title);
    index_write_anchor(to, title);
    fprintf(to, ") | ");
    json_array_foreach(json_object_get(section, "keys"), k, key)
        fprintf(to, "%s`%s`", k > 0 ? ", " : "", cli_text(key, "name"));
    fprintf(to, " |\n");
  }
}

void reference_write_index(FILE *to, const json_t *items, const json_t *sections,
                           const cli_command *const *commands) {
  reference_write_head(to, "Reference", index_intro);
  index_write_sections(to, sections);
  for (const reference_page *p = reference_pages; p->file; p++) index_write_items(to, p, items);
  fprintf(to, "\n## [Commands](commands.md)\n\n| command | |\n|---|---|\n");
  for (int i = 0; commands[i] != NULL; i++) {
    fprintf(to, "| [`tenon %s`](commands.md#tenon-%s) | ", commands[i]->name, commands[i]->name);
    reference_write_text(to, commands[i]->doc);
    fprintf(to, " |\n");
  }
  fprintf(to, "\n[Exit codes](commands.md#exit-codes)\n");
}
