/* tools/init/zoo.h: the models of docs/zoo, in the program. */
#pragma once

#include <stdio.h>

#include "tools/cli/cli.h"

typedef struct zoo_file {
  const char *file, *text; /* "zoo/resnet18.ini", "zoo/parts/resnet.ini" */
} zoo_file;

/* The name behind "zoo:"; NULL: the word is a path. */
const char *zoo_word(const char *word);
/* The model of this name; NULL: it was refused, with the near ones. */
const zoo_file *zoo_find(const cli_args *args, const char *name);
/* A line for each model. Returns an exit code. */
int zoo_list(const cli_args *args);
/* The model with the blocks that it includes, as one file. `weights` is the path of [weights] file; with
 * "" the other keys of [weights] become comments. */
void zoo_write(FILE *to, const zoo_file *model, const char *weights);
