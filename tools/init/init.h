/* tools/init/init.h: the parts of `tenon init`. */
#ifndef TENON_TOOLS_INIT_INIT_H
#define TENON_TOOLS_INIT_INIT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/init/pictures.h"

/* The value of a path in the configuration. */
typedef struct init_file {
  FILE *to;
  const char *name; /* [run] name */
  const char *path; /* of the data, relative to the configuration or absolute */
} init_file;

/* Decisions that `tenon init` prints. */
typedef struct init_choice {
  long long side, batch, epochs; /* of pictures; tokens of a text */
} init_choice;

/* A ResNet for the pictures. */
void init_write_images(const init_file *file, const pictures *found, init_choice *choice);

typedef struct text_survey {
  long long bytes, characters; /* of the file; different characters */
  long long length;            /* in characters, or in bytes */
  bool utf8;                   /* false: the tokens are bytes */
} text_survey;

/* Returns an exit code. */
int init_survey_text(const cli_args *args, const char *path, text_survey *found);
/* A transformer that predicts the next character, or byte. */
void init_write_text(const init_file *file, const text_survey *found, init_choice *choice);

#endif
