/* tests/integration/recipes/recipes.h: optimizers, losses and schedules, each as the cases of a file of
 * goldens, and the ways in which each case runs. Another kind is one file and a line of recipe_kinds. */
#pragma once

#include <stdbool.h>

#include "tensors.h"

typedef struct recipe_way {
  const char *name, *options; /* of the program */
  bool two_devices;           /* half of each batch on each */
  bool divided;               /* the state of the optimizer, too */
  bool rounds_as_peers;       /* products of bf16 are those of PyTorch, which has oneDNN, too */
} recipe_way;

typedef struct recipe_kind {
  const char *name;
  const char *golden; /* for each case `peer`, tensors by name, and `lr`, the learning rates, if any */
  const char *low_file, *low_options; /* the training in low precision */
  const char *scale; /* the first one of the loss in fp16: the first epoch skips updates, the last one none */
  const char *baseline; /* has as many launches as each case that `one_launch` names; NULL: not counted */
  void (*write_data)(const recipe_way *way);
  /* Writes net.ini for a case. Its options of the program, if any, are appended to a text of `size` bytes. */
  void (*write_case)(const recipe_way *way, const char *key, char *options, size_t size);
  bool (*one_launch)(const char *key);                  /* NULL: every case */
  bool (*fits)(const recipe_way *way, const char *key); /* whether that way can run the case; NULL: yes */
  bool (*rounds)(
      const char *key); /* its products are in bf16: compared where these are those of the peers; NULL: no */
  /* Whether two cases are of one kind, of which the first trains in low precision; NULL: none are. */
  bool (*is_variant)(const char *key, const char *other);
} recipe_kind;

extern const recipe_kind recipe_optimizers, recipe_losses, recipe_schedules;

/* A formula that the scripts in tests/golden have, too: 0 to 250. */
static inline float recipe_number(int row, int column) {
  return (float)((row * 37 + column * 11 + row * column * 5) % 251);
}

/* Appends to a text of `size` bytes. */
void recipe_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
