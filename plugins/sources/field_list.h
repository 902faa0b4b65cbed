/* plugins/sources/field_list.h: options that list fields, such as inputs and targets: NAME: VALUE, separated
 * by commas or lines. A comma in brackets is part of the value. As what a value is read, each source says. */
#pragma once

#include "plugins/sources/sources.h"

/* A part of the option's text, without blanks around it. */
typedef struct field_word {
  const char *text;
  size_t n;
} field_word;

typedef struct field_entry {
  field_word whole, name, value; /* value.text NULL: there is no colon, and the name is the whole entry */
  int32_t line;                  /* of the list, from 1 */
} field_entry;

typedef struct field_list {
  const void *handle;
  const char *option; /* for messages */
  const char *form;   /* as what an entry is written, for messages: "NAME: FILE, as in image: photos.npy" */
  const char *at;     /* behind the last entry */
  int32_t line;
} field_list;

/* The list in the text of an option. */
field_list field_list_of(const void *handle, const char *option, const char *form, const char *text);
/* Takes the next entry that is not empty. 0: the list has ended. */
int32_t field_list_next(field_list *list, field_entry *entry);
/* Copies the name in front of the colon. TN_EINVAL: the name is missing, has more than room - 1
 * characters, or one that is no letter, digit or '_'. */
tn_status field_list_name(const field_list *list, const field_entry *entry, char *to, size_t room);

int32_t field_word_is(field_word word, const char *text);
/* Cuts white space off at both ends. */
field_word field_word_trim(const char *text, size_t n);

/* Fail with TN_EINVAL: the entry is not written as `form` says; the name of two fields; more than `most`
 * fields. */
tn_status field_list_refuse(const field_list *list, const field_entry *entry);
tn_status field_list_refuse_twice(const field_list *list, const char *name);
tn_status field_list_refuse_more(const field_list *list, int32_t most);
