/* tools/cli/nearest.h: the name that a mistyped word most likely stands for. */
#pragma once

/* The nearest of n names by edits of a letter and swaps of neighbours; NULL: none is near. */
const char *nearest_word(const char *word, const char *const *names, int n);
