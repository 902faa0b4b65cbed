/* core/config/ini/parse.c: the interface to inih.
 *
 * inih 55, as distributions build it, reads lines of at most 199 bytes into fixed buffers and reports
 * neither line numbers nor empty sections. So it is fed short substitute lines: each header, followed by a
 * marker key, and each key with a serial number as its value. The handler then finds the entry for that
 * serial number. */
#include "core/config/ini/parse.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

/* A key that a file cannot contain, since names with '@' are rejected. */
#define SECTION_MARK "@"

typedef struct ini_feed {
  tn_ini_lines lines;
  tn_ini_part *part;
  tn_ini_entry entry; /* the entry of the current substitute line */
  bool mark_next;     /* the next substitute line is the marker of this header */
  int32_t serial, taken;
  tn_mistakes mistakes;
  tn_status status;
} ini_feed;

/* Keeps a mistake, so that the lines after it are read. */
static void ini_feed_note(ini_feed *feed) {
  feed->status = tn_mistakes_note(feed->lines.handle, feed->lines.arena, &feed->mistakes, feed->status);
}

/* Reads the next entry that is right. Keys below a header that is wrong are left out. */
static void ini_feed_next_entry(ini_feed *feed) {
  for (;;) {
    feed->status = tn_ini_lines_next(&feed->lines, &feed->entry);
    if (feed->status == TN_OK && (feed->entry.kind != TN_INI_KEY || !feed->lines.skipping)) return;
    if (feed->status == TN_OK) continue;
    ini_feed_note(feed);
    if (feed->status != TN_OK) return;
    tn_ini_lines_skip_value(&feed->lines);
  }
}

/* Reads the next entry and writes its substitute line. */
static int ini_feed_next_line(ini_feed *feed, char *line, size_t capacity) {
  if (feed->mark_next) {
    feed->mark_next = false;
    return snprintf(line, capacity, SECTION_MARK " = %d\n", ++feed->serial);
  }
  ini_feed_next_entry(feed);
  if (feed->status != TN_OK || feed->entry.kind == TN_INI_END) return 0;
  if (feed->entry.kind == TN_INI_KEY)
    return snprintf(line, capacity, "%s = %d\n", feed->entry.name, ++feed->serial);
  feed->mark_next = true;
  return snprintf(line, capacity, "[%s]\n", feed->entry.name);
}

/* Called by inih in place of fgets. */
static char *ini_feed_line(char *line, int capacity, void *stream) {
  ini_feed *feed = stream;
  if (feed->status != TN_OK || capacity <= 0) return NULL;
  int n = ini_feed_next_line(feed, line, (size_t)capacity);
  if (n >= capacity)
    feed->status = tn_failf(feed->lines.handle, TN_EINTERNAL, "%s:%d: inih's lines of %d bytes are too short",
                            feed->lines.file, feed->entry.line, capacity);
  return n > 0 && feed->status == TN_OK ? line : NULL;
}

static tn_status ini_feed_take_section(ini_feed *feed, const char *name) {
  tn_ini_part *part = feed->part;
  for (int32_t i = 0; i < part->n_sections; i++)
    if (strcmp(part->sections[i].name, name) == 0) {
      feed->lines.skipping = true;
      return tn_failf(feed->lines.handle, TN_EINVAL,
                      "%s:%d: the section [%s] is given twice, first in line %d; merge the two",
                      feed->lines.file, feed->entry.line, name, part->sections[i].line);
    }
  tn_section *section = tn_ini_add_section(feed->lines.arena, &part->sections, &part->n_sections);
  if (section == NULL) return TN_ENOMEM;
  section->name = feed->entry.name;
  section->file = feed->lines.file;
  section->line = feed->entry.line;
  return TN_OK;
}

static tn_key ini_feed_make_key(const ini_feed *feed) {
  const tn_ini_entry *entry = &feed->entry;
  return (tn_key){.name = entry->name,
                  .value = entry->value,
                  .file = feed->lines.file,
                  .line = entry->line,
                  .value_lines = entry->value_lines,
                  .n_value_lines = entry->n_value_lines};
}

static tn_status ini_feed_given_twice(const ini_feed *feed, const tn_key *first) {
  return tn_failf(feed->lines.handle, TN_EINVAL, "%s:%d: the key '%s' is given twice, first in line %d",
                  feed->lines.file, feed->entry.line, first->name, first->line);
}

/* Handles a key before the first header. */
static tn_status ini_feed_take_include(ini_feed *feed, const char *name) {
  tn_key *include = &feed->part->include;
  if (strcmp(name, "include") != 0)
    return tn_failf(feed->lines.handle, TN_EINVAL,
                    "%s:%d: the key '%s' stands before the first section, where only 'include' may",
                    feed->lines.file, feed->entry.line, name);
  if (include->name != NULL) return ini_feed_given_twice(feed, include);
  *include = ini_feed_make_key(feed);
  return TN_OK;
}

static tn_status ini_feed_take_key(ini_feed *feed, const char *name) {
  tn_section *section = &feed->part->sections[feed->part->n_sections - 1];
  const tn_key *before = tn_section_key(section, name);
  if (before != NULL) return ini_feed_given_twice(feed, before);
  tn_key *key = tn_ini_add_key(feed->lines.arena, section);
  if (key == NULL) return TN_ENOMEM;
  *key = ini_feed_make_key(feed);
  return TN_OK;
}

/* Called by inih for each key; 0 reports an error to inih. */
static int ini_feed_take(void *user, const char *section, const char *name, const char *value) {
  ini_feed *feed = user;
  char serial[16];
  if (feed->status != TN_OK) return 0;
  snprintf(serial, sizeof(serial), "%d", feed->serial);
  feed->taken++;
  if (value == NULL || strcmp(value, serial) != 0)
    feed->status = tn_failf(feed->lines.handle, TN_EINTERNAL, "%s:%d: inih gave '%s' back as '%s'",
                            feed->lines.file, feed->entry.line, serial, value != NULL ? value : "");
  else if (strcmp(name, SECTION_MARK) == 0)
    feed->status = ini_feed_take_section(feed, section);
  else
    feed->status = *section == '\0' ? ini_feed_take_include(feed, name) : ini_feed_take_key(feed, name);
  ini_feed_note(feed);
  return feed->status == TN_OK;
}

tn_status tn_ini_parse_part(const void *handle, tn_arena *arena, tn_ini_size *size, const char *file,
                            const char *text, size_t count, tn_ini_part *part) {
  ini_feed feed = {.lines = tn_ini_lines_of(handle, arena, size, file, text, count), .part = part};
  *part = (tn_ini_part){0};
  int code = ini_parse_stream(ini_feed_line, &feed, ini_feed_take, &feed);
  if (feed.status != TN_OK) return feed.status;
  if (code == -2) return tn_failf(handle, TN_ENOMEM, "out of memory while %s was parsed", file);
  if (code != 0 || feed.taken != feed.serial)
    return tn_failf(handle, TN_EINTERNAL, "%s: inih took %d of %d entries and returned %d", file, feed.taken,
                    feed.serial, code);
  return tn_mistakes_tell(handle, &feed.mistakes);
}
