/* tests/attack/known.c: see known.h. */
#include "tests/attack/known.h"

#include <string.h>

#define BEST "checkpoints/best"

const known_attack known_attacks[] = {
    /* other weights, without a word */
    {"damage", 9, 11, "removed", "picture/" BEST "/optimizer.safetensors"},
    {"damage", 7, 8, "zeros", "picture/" BEST "/model.safetensors"},
    {"damage", 9, 46, "a folder", "picture/" BEST},
    {"damage", 8, 8, "a strange text", "picture/" BEST},
    {"damage", 8, 14, "a link to /nowhere", "text/" BEST},
    {"damage", 1, 16, "the line", "picture/" BEST "/state.json"},
    /* no end */
    {"inputs", 7, 195, "a file of IDX: a FIFO"},
    /* bytes that reach the terminal */
    {"inputs", 7, 404, "a configuration: corners.ini, the word"},
    {"hostile", 7, 22, "7028103005123535761"},
    {"damage", 2, 272, "the word", "text/plan.json"},
    /* a crash */
    {"hostile", 1, 279, "8870322452086244707"},
    {NULL},
};

const known_attack *known_attack_find(const char *family, uint64_t seed, uint64_t number) {
  for (const known_attack *k = known_attacks; k->family != NULL; k++)
    if (k->seed == seed && k->number == number && strcmp(k->family, family) == 0) return k;
  return NULL;
}
