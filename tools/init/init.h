/* tools/init/init.h: the parts of `tenon init`. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "tools/init/array_files.h"
#include "tools/init/pictures.h"
#include "tools/init/sounds.h"

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
/* The sections about data, for pictures of choice->side. */
void init_write_pictures(const init_file *file, const pictures *found, const init_choice *choice);
/* At least ten steps an epoch, if there are pictures enough, and at least four pictures a step. */
long long init_choose_batch(long long pictures);

/* A ResNet of torchvision in a file of weights. */
typedef struct resnet_shape {
  const char *file, *path; /* as the user names it, and as the configuration does */
  bool bottleneck;
  int blocks[4]; /* in each stage */
} resnet_shape;

/* Reads the names in args->weights. Returns an exit code. */
int init_survey_resnet(tn_context *context, const cli_args *args, resnet_shape *shape);
/* Fine-tuning of its last layer. shape->path is set. */
void init_write_resnet(const init_file *file, const pictures *found, const resnet_shape *shape,
                       init_choice *choice);

typedef struct text_survey {
  long long bytes, characters; /* of the file; different characters */
  long long length;            /* in characters, or in bytes */
  bool utf8;                   /* false: the tokens are bytes */
} text_survey;

/* Returns an exit code. */
int init_survey_text(const cli_args *args, const char *path, text_survey *found);
/* A transformer that predicts the next character, or byte. */
void init_write_text(const init_file *file, const text_survey *found, init_choice *choice);
/* The choices for a text, and the sections of its model. */
init_choice init_choose_text(const text_survey *found);
void init_write_transformer(const init_file *file, const text_survey *found, const init_choice *choice);

typedef struct tokens_survey {
  long long tokens, classes;
  char name[256], valid[512]; /* files; valid may be "" */
} tokens_survey;

/* Whether a file has tokens, by its header or its ending. */
bool init_is_tokens(const char *path);
/* Returns an exit code. */
int init_survey_tokens(const cli_args *args, const char *path, tokens_survey *found);
/* file->path is the folder. */
void init_write_tokens(const init_file *file, const tokens_survey *found, init_choice *choice);

/* The arrays of a folder or archive, of which some are inputs and targets. Returns an exit code. */
int init_survey_arrays(const cli_args *args, const char *path, bool folder, array_looks *found);
/* file->path is the folder. */
void init_write_arrays(const init_file *file, const array_looks *found, init_choice *choice);

/* The bytes of a file, which the caller frees; NULL: errno says why. */
unsigned char *init_read_bytes(const char *path, size_t *n);

/* Whether the path is a tar archive, or a folder that has one. */
bool init_is_shards(const char *path, bool folder);
/* The pictures and classes of archives. `path` is that of the configuration. Returns an exit code. */
int init_survey_shards(const cli_args *args, const char *given, const char *path, bool folder,
                       pictures *found);

typedef struct sounds_survey {
  long long classes, count;
  sounds_form form;
  bool parts;     /* the folder has train/ */
  char valid[16]; /* the folder for validation, or "" */
} sounds_survey;

/* Whether a folder has folders of sounds. */
bool init_is_sounds(const char *path);
/* Returns an exit code. */
int init_survey_sounds(const cli_args *args, const char *path, sounds_survey *found);
/* A network on spectrograms. */
void init_write_sounds(const init_file *file, const sounds_survey *found, init_choice *choice);

typedef struct table_survey table_survey;
/* Whether the name is that of a table: .csv, .tsv, or .jsonl and .ndjson for lines of JSON. */
bool init_is_table(const char *path);
/* Looks at all columns. Returns an exit code; the caller calls init_free_table in any case. */
int init_survey_table(const cli_args *args, const char *path, table_survey **found);
/* A network for the columns of numbers, of few words and of files, or of sentences. */
void init_write_table(const init_file *file, table_survey *found, init_choice *choice);
void init_free_table(table_survey *survey);
