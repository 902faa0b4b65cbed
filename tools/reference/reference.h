/* tools/reference/reference.h: pages of the reference, in Markdown, from descriptors and tables. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "tools/cli/cli.h"

/* Begins the third line of every page. A file without it is not overwritten. */
#define REFERENCE_MARK "<!-- Written by `tenon reference`."

/* A page of items: those of a kind, and of a role where `role` is not NULL. */
typedef struct reference_page {
  const char *file, *title, *kind, *role;
  const char *section; /* of the examples; NULL: examples.c puts them together, or there are none */
  const char *types;   /* the word before the types of an item */
  const char *intro;
} reference_page;
extern const reference_page reference_pages[]; /* ended by a file that is NULL */

/* Whether the page has the item. */
bool reference_page_has(const reference_page *page, const json_t *item);

/* `items` and `sections` are those of tn_inspect. */
void reference_write_items(FILE *to, const reference_page *page, const json_t *items);
void reference_write_sections(FILE *to, const json_t *sections);
void reference_write_commands(FILE *to, const cli_command *const *commands);
void reference_write_index(FILE *to, const json_t *items, const json_t *sections,
                           const cli_command *const *commands);

/* The ops of the plugin that --header names, as C functions; refuses a plugin without ops. */
int reference_write_header(FILE *to, const cli_args *args, const json_t *items);

/* The lines of a use of the item, in a block of INI. */
void reference_write_example(FILE *to, const reference_page *page, const json_t *item);

/* "# TITLE", a comment that names the program, and the text. */
void reference_write_head(FILE *to, const char *title, const char *intro);
/* A text of a descriptor, in which characters that Markdown takes for marks are escaped. */
void reference_write_text(FILE *to, const char *text);
/* The options of an item or the keys of a section as a table, or a line that there are none. `what` is the
 * word for one of them. */
void reference_write_options(FILE *to, const json_t *options, const char *what);
/* The heading of a section: "[run]", "[group.NAME]"; and the rest of its doc. */
void reference_section_title(const json_t *section, char title[64], const char **rest);
