/* tests/attack/known.c: see known.h. */
#include "tests/attack/known.h"

const known_attack known_attacks[] = {
    /* other weights, without a word */
    {"damage", 9, 11, "picture/checkpoints/best/optimizer.safetensors: removed"},
    {"damage", 7, 8, "picture/checkpoints/best/model.safetensors: zeros"},
    {"damage", 9, 46, "picture/checkpoints/best: a folder"},
    {"damage", 8, 8, "picture/checkpoints/best: a strange text"},
    {"damage", 8, 14, "text/checkpoints/best: a link to /nowhere"},
    {"damage", 1, 16, "picture/checkpoints/best/state.json: the line"},
    /* no end */
    {"inputs", 7, 195, "a file of IDX: a FIFO"},
    /* bytes that reach the terminal */
    {"inputs", 7, 404, "a configuration: corners.ini, the word"},
    {"hostile", 7, 22, "7028103005123535761"},
    {"damage", 2, 272, "text/plan.json: the word"},
    /* a crash */
    {"hostile", 1, 279, "8870322452086244707"},
    {NULL, 0, 0, NULL},
};
