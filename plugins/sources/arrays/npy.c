/* plugins/sources/arrays/npy.c: NumPy's .npy files: "\x93NUMPY", two bytes of version, the length of the
 * header (two bytes in version 1, four later), the header, which is a Python dict as text, and the array
 * (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#include <string.h>

#include "plugins/sources/arrays/array.h"

enum { NPY_LONGEST_HEADER = 65536, NPY_WORD = 32 };

/* The text of the header, which has no NUL at its end. */
typedef struct npy_text {
  const void *handle;
  const char *where, *start, *at, *end;
  int32_t fortran;
} npy_text;

static tn_status numpy_fail(const npy_text *t, const char *expected) {
  return tn_fail(t->handle, TN_EINVAL, NULL, "%s: its header is damaged at byte %zu, expected %s", t->where,
                 (size_t)(t->at - t->start), expected);
}

static void numpy_blanks(npy_text *t) {
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t')) t->at++;
}

static int32_t numpy_take(npy_text *t, const char *piece) {
  size_t n = strlen(piece);
  numpy_blanks(t);
  if ((size_t)(t->end - t->at) < n || memcmp(t->at, piece, n) != 0) return 0;
  t->at += n;
  return 1;
}

/* 'word' or "word"; the keys and the types that are supported have no escapes. */
static int32_t numpy_take_word(npy_text *t, char word[NPY_WORD]) {
  numpy_blanks(t);
  if (t->at == t->end || (*t->at != '\'' && *t->at != '"')) return 0;
  const char *close = memchr(t->at + 1, *t->at, (size_t)(t->end - t->at - 1));
  size_t n = close != NULL ? (size_t)(close - t->at - 1) : NPY_WORD;
  if (n >= NPY_WORD) return 0;
  memcpy(word, t->at + 1, n);
  word[n] = '\0';
  t->at = close + 1;
  return 1;
}

static int32_t numpy_take_number(npy_text *t, int64_t *number) {
  numpy_blanks(t);
  const char *first = t->at;
  for (*number = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
    if (__builtin_mul_overflow(*number, (int64_t)10, number) ||
        __builtin_add_overflow(*number, (int64_t)(*t->at - '0'), number))
      return 0;
  return t->at > first;
}

/* "()", "(3,)", "(2, 3)" */
static tn_status numpy_take_shape(npy_text *t, array *a) {
  if (!numpy_take(t, "(")) return numpy_fail(t, "a shape in brackets");
  a->rank = 0;
  for (int32_t more = 1; !numpy_take(t, ")"); more = numpy_take(t, ",")) {
    if (a->rank == TN_MAX_RANK)
      return tn_fail(t->handle, TN_EINVAL, NULL, "%s: has more than %d dimensions, expected at most so many",
                     t->where, TN_MAX_RANK);
    if (!more || !numpy_take_number(t, &a->dims[a->rank++]))
      return numpy_fail(t, "dimensions, with ',' between");
    numpy_take(t, "L"); /* Python 2 */
  }
  return TN_OK;
}

/* "<f4": the order of the bytes, the kind, and their number. */
static tn_status numpy_take_type(npy_text *t, array *a) {
  static const char kinds[] = "biuf", sizes[] = "1248";
  static const uint8_t elements[] = {ELEMENT_BOOL, ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_FLOAT};
  char word[NPY_WORD] = "";
  numpy_blanks(t);
  if (t->at < t->end && *t->at == '[')
    return tn_fail(t->handle, TN_EINVAL, NULL,
                   "%s: is a structured array, expected plain numbers; save each of its fields as one array",
                   t->where);
  if (!numpy_take_word(t, word)) return numpy_fail(t, "a type in quotes");
  const char *kind = word[0] != '\0' && word[1] != '\0' ? strchr(kinds, word[1]) : NULL;
  int32_t known = kind != NULL && strlen(word) == 3 && strchr("<>|=", word[0]) && strchr(sizes, word[2]);
  if (known) {
    a->element = (array_element){elements[kind - kinds], (uint8_t)(word[2] - '0'), word[0] == '>'};
    known = (word[1] != 'b' || word[2] == '1') && (word[1] != 'f' || word[2] != '1');
  }
  if (known) return TN_OK;
  return tn_fail(t->handle, TN_EINVAL, NULL,
                 "%s: has elements of type '%s'%s, expected bool, whole numbers or floats; convert it with "
                 "astype, and save it again",
                 t->where, word, strchr(word, 'O') != NULL ? ", which are Python objects" : "");
}

static tn_status numpy_take_member(npy_text *t, array *a, uint32_t *seen) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  static const char expected[] = "descr, fortran_order and shape, each once";
  char key[NPY_WORD];
  uint32_t which = 0;
  if (!numpy_take_word(t, key)) return numpy_fail(t, expected);
  while (which < 3 && strcmp(key, keys[which]) != 0) which++;
  if (which == 3 || (*seen & 1u << which) != 0 || !numpy_take(t, ":")) return numpy_fail(t, expected);
  *seen |= 1u << which;
  if (which == 0) return numpy_take_type(t, a);
  if (which == 2) return numpy_take_shape(t, a);
  t->fortran = numpy_take(t, "True");
  return t->fortran || numpy_take(t, "False") ? TN_OK : numpy_fail(t, "True or False");
}

static tn_status numpy_read_header(npy_text *t, array *a) {
  uint32_t seen = 0;
  if (!numpy_take(t, "{")) return numpy_fail(t, "'{'");
  for (int32_t more = 1; !numpy_take(t, "}"); more = numpy_take(t, ",")) {
    if (!more) return numpy_fail(t, "',' or '}'");
    TN_TRY(numpy_take_member(t, a, &seen));
  }
  if (seen != 7) return numpy_fail(t, "descr, fortran_order and shape, each once");
  if (!t->fortran || a->rank < 2) return TN_OK;
  return tn_fail(t->handle, TN_EINVAL, NULL,
                 "%s: is stored in Fortran order, where a row is scattered over the file; save "
                 "numpy.ascontiguousarray of it",
                 t->where);
}

tn_status npy_find(const void *handle, const char *where, const uint8_t *bytes, size_t count, array *a) {
  static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
  if (count < 12 || memcmp(bytes, magic, sizeof magic) != 0)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: does not begin with \\x93NUMPY: it is no .npy file", where);
  if (bytes[6] < 1 || bytes[6] > 3)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: has version %d of the .npy format, expected 1, 2 or 3",
                   where, bytes[6]);
  size_t start = bytes[6] == 1 ? 10 : 12,
         length = bytes[6] == 1 ? bytes_u16(bytes + 8) : bytes_u32(bytes + 8);
  if (length > NPY_LONGEST_HEADER || length > count - start)
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: has %zu bytes, but a header of %zu: it is cut off or damaged", where, count, length);
  const char *text = (const char *)bytes + start;
  npy_text t = {handle, where, text, text, text + length, 0};
  TN_TRY(numpy_read_header(&t, a));
  a->data = bytes + start + length;
  return array_check_bytes(handle, where, a, count - start - length);
}
