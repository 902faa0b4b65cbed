/* core/base/text/base64.h: bytes as text (RFC 4648, section 4). */
#pragma once

#include <stddef.h>

/* The characters of n bytes, without the zero behind them. */
static inline size_t tn_base64_length(size_t n) { return (n + 2) / 3 * 4; }
/* Writes them and a zero. */
void tn_base64(const void *from, size_t n, char *to);
