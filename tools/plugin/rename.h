/* tools/plugin/rename.h: the words of C code. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Writes the code with every word `from`, or `also` (NULL: none), replaced by `to`: names, and words of texts
 * and comments. Parts of words stay. */
void rename_print(FILE *file, const char *code, const char *from, const char *also, const char *to);
/* Whether the code uses the word as a name, outside of texts and comments. */
bool rename_uses(const char *code, const char *word);
/* Whether the word can name a plugin: lower-case letters, digits and '_', and no word of C or of its
 * mathematics. */
bool rename_is_name(const char *word);
