/* tools/reference/sections.c: the page of the keys of a configuration. */
#include <string.h>

#include "tools/reference/reference.h"

static const char sections_intro[] =
    "A configuration is an INI file. `tenon config explain SECTION` and `tenon config explain SECTION.KEY` "
    "print the same. `--set SECTION.KEY=VALUE` overrides a key. Beside these sections there are "
    "`[backend.NAME]` with the options of a [backend](backends.md), `[observer.NAME]` with those of an "
    "[observer](observers.md), and `[data.train]` and `[data.valid]`, whose keys override those of `[data]` "
    "for training and validation.";

/* The page of the items that a section chooses, whose options are keys of it, too. */
static const char *const sections_items[][3] = {
    {"model", NULL, "[layers](layers.md), [losses](losses.md), [metrics](metrics.md)"},
    {"data", "source", "[sources](sources.md), [transforms](transforms.md)"},
    {"source", "source", "[sources](sources.md)"},
    {"optimizer", "optimizer", "[optimizers](optimizers.md)"},
    {"group", "optimizer", "[optimizers](optimizers.md)"},
    {"schedule", "schedule", "[schedules](schedules.md)"},
    {"precision", "policy", "[precision policies](precision.md)"},
    {"backend", NULL, "[backends](backends.md)"},
    {"distributed", NULL, "[communicators](communicators.md)"}};

static void sections_write_links(FILE *to, const char *section) {
  for (size_t i = 0; i < sizeof sections_items / sizeof *sections_items; i++) {
    const char *const *row = sections_items[i];
    if (strcmp(row[0], section) != 0) continue;
    if (row[1]) fprintf(to, "\nThe options of the %s are keys of the section, too.", row[1]);
    fprintf(to, "%sPages: %s.\n", row[1] ? " " : "\n", row[2]);
  }
}

void reference_write_sections(FILE *to, const json_t *sections) {
  const json_t *section;
  size_t i;
  reference_write_head(to, "Sections and keys", sections_intro);
  json_array_foreach(sections, i, section) {
    char title[64];
    const char *rest;
    reference_section_title(section, title, &rest);
    fprintf(to, "\n## %s\n\n", title);
    reference_write_text(to, rest);
    fprintf(to, "\n");
    sections_write_links(to, cli_text(section, "section"));
    reference_write_options(to, json_object_get(section, "keys"), "key");
  }
}
