/* core/config/ini/parse.c: inih behind a reader of ours.
 *
 * inih 55, as distributions build it, reads lines of at most 199 bytes into fixed buffers and knows
 * neither line numbers nor empty sections. So it gets short lines that stand for the true ones:
 * each header, followed by a marker key, and each key with a serial number for a value. The handler
 * then finds the checked text of the entry that the serial number names. */
#include "core/config/ini/parse.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

/* A key that no file can contain, since '@' is refused in names. */
#define SECTION_MARK "@"

typedef struct tn_ini_feed {
  tn_ini_lines lines;
  tn_ini_part *part;
  tn_ini_entry entry; /* what the line just handed out stands for */
  bool mark_next;     /* the header of `entry` is out, its marker is not */
  int32_t serial, taken;
  tn_status status;
} tn_ini_feed;

tn_section *tn_ini_add_section(tn_arena *arena, tn_section **sections, int32_t *n) {
  tn_section *grown = tn_arena_grow(arena, *sections, (size_t)*n, sizeof(*grown));
  if (grown == NULL) return NULL;
  *sections = grown;
  memset(&grown[*n], 0, sizeof(*grown));
  return &grown[(*n)++];
}

tn_key *tn_ini_add_key(tn_arena *arena, tn_section *section) {
  tn_key *grown = tn_arena_grow(arena, section->keys, (size_t)section->n_keys, sizeof(*grown));
  if (grown == NULL) return NULL;
  section->keys = grown;
  memset(&grown[section->n_keys], 0, sizeof(*grown));
  return &grown[section->n_keys++];
}

tn_status tn_ini_put_key(tn_arena *arena, tn_section *section, const tn_key *key) {
  tn_key *at = tn_section_key(section, key->name), *before = NULL;
  if (at != NULL && (before = tn_arena_copy(arena, at, sizeof(*at))) == NULL) return TN_ENOMEM;
  if (at == NULL && (at = tn_ini_add_key(arena, section)) == NULL) return TN_ENOMEM;
  *at = *key;
  at->before = before;
  return TN_OK;
}

/* Moves on to the next entry, and writes the line that stands for it. */
static int next_line(tn_ini_feed *feed, char *line, size_t capacity) {
  if (feed->mark_next) {
    feed->mark_next = false;
    return snprintf(line, capacity, SECTION_MARK " = %d\n", ++feed->serial);
  }
  feed->status = tn_ini_lines_next(&feed->lines, &feed->entry);
  if (feed->status != TN_OK || feed->entry.what == TN_INI_END) return 0;
  if (feed->entry.what == TN_INI_KEY)
    return snprintf(line, capacity, "%s = %d\n", feed->entry.name, ++feed->serial);
  feed->mark_next = true;
  return snprintf(line, capacity, "[%s]\n", feed->entry.name);
}

/* What inih calls in place of fgets. */
static char *feed_line(char *line, int capacity, void *stream) {
  tn_ini_feed *feed = stream;
  if (feed->status != TN_OK || capacity <= 0) return NULL;
  int n = next_line(feed, line, (size_t)capacity);
  if (n >= capacity)
    feed->status = tn_failf(feed->lines.handle, TN_EINTERNAL, "%s:%d: inih's lines of %d bytes are too short",
                            feed->lines.file, feed->entry.line, capacity);
  return n > 0 && feed->status == TN_OK ? line : NULL;
}

static tn_status take_section(tn_ini_feed *feed, const char *name) {
  tn_ini_part *part = feed->part;
  for (int32_t i = 0; i < part->n_sections; i++)
    if (strcmp(part->sections[i].name, name) == 0)
      return tn_failf(feed->lines.handle, TN_EINVAL,
                      "%s:%d: the section [%s] is given twice, first in line %d; merge the two",
                      feed->lines.file, feed->entry.line, name, part->sections[i].line);
  tn_section *section = tn_ini_add_section(feed->lines.arena, &part->sections, &part->n_sections);
  if (section == NULL) return TN_ENOMEM;
  section->name = feed->entry.name;
  section->file = feed->lines.file;
  section->line = feed->entry.line;
  return TN_OK;
}

static tn_key key_of(const tn_ini_feed *feed) {
  const tn_ini_entry *entry = &feed->entry;
  return (tn_key){.name = entry->name,
                  .value = entry->value,
                  .file = feed->lines.file,
                  .line = entry->line,
                  .value_lines = entry->value_lines,
                  .n_value_lines = entry->n_value_lines};
}

static tn_status given_twice(const tn_ini_feed *feed, const tn_key *first) {
  return tn_failf(feed->lines.handle, TN_EINVAL, "%s:%d: the key '%s' is given twice, first in line %d",
                  feed->lines.file, feed->entry.line, first->name, first->line);
}

/* A key before the first header. */
static tn_status take_include(tn_ini_feed *feed, const char *name) {
  tn_key *include = &feed->part->include;
  if (strcmp(name, "include") != 0)
    return tn_failf(feed->lines.handle, TN_EINVAL,
                    "%s:%d: the key '%s' stands before the first section, where only 'include' may",
                    feed->lines.file, feed->entry.line, name);
  if (include->name != NULL) return given_twice(feed, include);
  *include = key_of(feed);
  return TN_OK;
}

static tn_status take_key(tn_ini_feed *feed, const char *name) {
  tn_section *section = &feed->part->sections[feed->part->n_sections - 1];
  const tn_key *before = tn_section_key(section, name);
  if (before != NULL) return given_twice(feed, before);
  tn_key *key = tn_ini_add_key(feed->lines.arena, section);
  if (key == NULL) return TN_ENOMEM;
  *key = key_of(feed);
  return TN_OK;
}

/* What inih calls for each key; 0 tells it that something is wrong. */
static int take(void *user, const char *section, const char *name, const char *value) {
  tn_ini_feed *feed = user;
  char serial[16];
  if (feed->status != TN_OK) return 0;
  snprintf(serial, sizeof(serial), "%d", feed->serial);
  feed->taken++;
  if (value == NULL || strcmp(value, serial) != 0)
    feed->status = tn_failf(feed->lines.handle, TN_EINTERNAL, "%s:%d: inih gave '%s' back as '%s'",
                            feed->lines.file, feed->entry.line, serial, value != NULL ? value : "");
  else if (strcmp(name, SECTION_MARK) == 0)
    feed->status = take_section(feed, section);
  else
    feed->status = *section == '\0' ? take_include(feed, name) : take_key(feed, name);
  return feed->status == TN_OK;
}

tn_status tn_ini_parse_part(const void *handle, tn_arena *arena, const char *file, const char *text,
                            size_t count, tn_ini_part *part) {
  tn_ini_feed feed = {.lines = tn_ini_lines_of(handle, arena, file, text, count), .part = part};
  *part = (tn_ini_part){0};
  int code = ini_parse_stream(feed_line, &feed, take, &feed);
  if (feed.status != TN_OK) return feed.status;
  if (code == -2) return tn_failf(handle, TN_ENOMEM, "out of memory while %s was parsed", file);
  if (code != 0 || feed.taken != feed.serial)
    return tn_failf(handle, TN_EINTERNAL, "%s: inih took %d of %d entries and returned %d", file, feed.taken,
                    feed.serial, code);
  return TN_OK;
}
