/* core/export/source/kernels.c: the kernels, as the text of the program has them. */
#include "core/export/source/source.h"

/* A tile is some rows times the columns of two vectors, whose sums stay in registers. Columns come from
 * panels: 16 of them lie beside each other, so that no load is strided and the end of a matrix needs no
 * check. */
static const char kernel_tile[] =
    "/* Elements that gcc and clang keep in one vector register, and the rows of a tile, whose sums fill the "
    "registers. */\n"
    "#if defined(__AVX512F__)\n"
    "enum { lanes = 16, tile_rows = 6 };\n"
    "#elif defined(__AVX__)\n"
    "enum { lanes = 8, tile_rows = 6 };\n"
    "#elif defined(__SSE__)\n"
    "#define TILE_FOUR\n"
    "enum { lanes = 4, tile_rows = 4 };\n"
    "#else\n"
    "enum { lanes = 4, tile_rows = 6 };\n"
    "#endif\n"
    "enum { panel = 16, tile_columns = 2 * lanes };\n"
    "#if defined(__GNUC__)\n"
    "typedef float vector __attribute__((vector_size(4 * lanes)));\n"
    "#define ADD(s, a, v) ((s) += (a) * (v))\n"
    "#else\n"
    "typedef struct vector {\n"
    "  float v[lanes];\n"
    "} vector;\n"
    "#define ADD(s, a, x)                                              \\\n"
    "  do {                                                            \\\n"
    "    for (int t = 0; t < lanes; t++) (s).v[t] += (a) * (x).v[t];   \\\n"
    "  } while (0)\n"
    "#endif\n"
    "\n"
    "/* Where the elements of a row lie that are summed: three loops. */\n"
    "typedef struct tile_steps {\n"
    "  long n[3], step[3];\n"
    "} tile_steps;\n"
    "\n"
    "/* A matrix in panels: for each 16 columns, `inner` times their elements beside each other. */\n"
    "typedef struct tile_matrix {\n"
    "  const float *panels;\n"
    "  long columns, inner;\n"
    "} tile_matrix;\n"
    "\n"
    "/* sum[k][t]: row k times column t of those of `left`, then of `right`. */\n"
    "static void tile_sum(const tile_steps *s, const float *const *x, const float *left, const float "
    "*right,\n"
    "                     float (*sum)[tile_columns]) {\n"
    "  vector l0, l1, l2, l3, r0, r1, r2, r3;\n"
    "#if !defined(TILE_FOUR)\n"
    "  vector l4, l5, r4, r5;\n"
    "  memset(&l4, 0, sizeof l4);\n"
    "  l5 = r4 = r5 = l4;\n"
    "#endif\n"
    "  memset(&l0, 0, sizeof l0);\n"
    "  l1 = l2 = l3 = r0 = r1 = r2 = r3 = l0;\n"
    "  for (long c = 0; c < s->n[0]; c++)\n"
    "    for (long i = 0; i < s->n[1]; i++) {\n"
    "      long at = c * s->step[0] + i * s->step[1];\n"
    "      for (long j = 0; j < s->n[2]; j++, at += s->step[2], left += panel, right += panel) {\n"
    "        vector l, r;\n"
    "        memcpy(&l, left, sizeof l);\n"
    "        memcpy(&r, right, sizeof r);\n"
    "        ADD(l0, x[0][at], l);\n"
    "        ADD(r0, x[0][at], r);\n"
    "        ADD(l1, x[1][at], l);\n"
    "        ADD(r1, x[1][at], r);\n"
    "        ADD(l2, x[2][at], l);\n"
    "        ADD(r2, x[2][at], r);\n"
    "        ADD(l3, x[3][at], l);\n"
    "        ADD(r3, x[3][at], r);\n"
    "#if !defined(TILE_FOUR)\n"
    "        ADD(l4, x[4][at], l);\n"
    "        ADD(r4, x[4][at], r);\n"
    "        ADD(l5, x[5][at], l);\n"
    "        ADD(r5, x[5][at], r);\n"
    "#endif\n"
    "      }\n"
    "    }\n"
    "#define STORE(k)                                \\\n"
    "  memcpy(sum[k], &l##k, sizeof l##k);           \\\n"
    "  memcpy(sum[k] + lanes, &r##k, sizeof r##k)\n"
    "  STORE(0);\n"
    "  STORE(1);\n"
    "  STORE(2);\n"
    "  STORE(3);\n"
    "#if !defined(TILE_FOUR)\n"
    "  STORE(4);\n"
    "  STORE(5);\n"
    "#endif\n"
    "}\n"
    "\n"
    "static const float *tile_column(const tile_matrix *m, long o) {\n"
    "  return m->panels + o / panel * panel * m->inner + o % panel;\n"
    "}\n"
    "\n"
    "/* The columns from o on; where no second vector of them is left, the first stands in for it. */\n"
    "static void tile_multiply(const tile_steps *s, const float *const *x, const tile_matrix *m, long o,\n"
    "                          float (*sum)[tile_columns]) {\n"
    "  const float *left = tile_column(m, o);\n"
    "  tile_sum(s, x, left, o + lanes < m->columns ? tile_column(m, o + lanes) : left, sum);\n"
    "}\n"
    "\n"
    "static long tile_least(long a, long b) { return a < b ? a : b; }\n"
    "\n";

static const char kernel_pack[] =
    "/* The panels of a matrix (inner, columns), or with `turned` (columns, inner). */\n"
    "static void pack_panels(const float *b, float *to, long columns, long inner, int turned) {\n"
    "  const long all = (columns + panel - 1) / panel * panel;\n"
    "  for (long j = 0; j < all; j++)\n"
    "    for (long k = 0; k < inner; k++)\n"
    "      to[j / panel * panel * inner + k * panel + j % panel] =\n"
    "          j >= columns ? 0.0f : turned ? b[j * inner + k] : b[k * columns + j];\n"
    "}\n"
    "\n";

static const char kernel_sizes[] =
    "typedef struct conv_sizes {\n"
    "  long batch, in, height, width, out, kernel[2], result[2], stride[2], padding[2], dilation[2], "
    "groups;\n"
    "  long padded[2]; /* of an image with its padding */\n"
    "} conv_sizes;\n"
    "\n"
    "/* The planes with their padding: x itself, without padding. */\n"
    "static const float *conv_pad(const conv_sizes *s, const float *x, long planes, float *padded) {\n"
    "  if (s->padded[0] == s->height && s->padded[1] == s->width) return x;\n"
    "  memset(padded, 0, sizeof(float) * (size_t)(planes * s->padded[0] * s->padded[1]));\n"
    "  for (long c = 0; c < planes; c++)\n"
    "    for (long i = 0; i < s->height; i++)\n"
    "      memcpy(padded + (c * s->padded[0] + i + s->padding[0]) * s->padded[1] + s->padding[1],\n"
    "             x + (c * s->height + i) * s->width, sizeof(float) * (size_t)s->width);\n"
    "  return padded;\n"
    "}\n"
    "\n";

static const char kernel_conv[] =
    "/* One group of an image: places of the result are the rows of the product, and channels its columns. "
    "*/\n"
    "static void conv_group(const conv_sizes *s, const tile_steps *steps, const float *x, const tile_matrix "
    "*w,\n"
    "                       const float *bias, float *y) {\n"
    "  const long area = s->result[0] * s->result[1];\n"
    "  float sum[tile_rows][tile_columns];\n"
    "  for (long o = 0; o < w->columns; o += tile_columns)\n"
    "    for (long p = 0; p < area; p += tile_rows) {\n"
    "      const long n = tile_least(area - p, tile_rows), m = tile_least(w->columns - o, tile_columns);\n"
    "      const float *rows[tile_rows];\n"
    "      for (long k = 0; k < tile_rows; k++) {\n"
    "        const long q = p + (k < n ? k : 0);\n"
    "        rows[k] = x + q / s->result[1] * s->stride[0] * s->padded[1] + q % s->result[1] * "
    "s->stride[1];\n"
    "      }\n"
    "      tile_multiply(steps, rows, w, o, sum);\n"
    "      for (long t = 0; t < m; t++)\n"
    "        for (long k = 0; k < n; k++) y[(o + t) * area + p + k] = sum[k][t] + (bias ? bias[o + t] : "
    "0.0f);\n"
    "    }\n"
    "}\n"
    "\n"
    "static void conv2d(const conv_sizes *s, const float *x, const float *w, const float *bias, float *y,\n"
    "                   float *scratch) {\n"
    "  const long plane = s->padded[0] * s->padded[1], in = s->in / s->groups, out = s->out / s->groups;\n"
    "  const int point = s->kernel[0] == 1 && s->kernel[1] == 1;\n"
    "  const tile_steps steps = {{point ? 1 : in, s->kernel[0], point ? in : s->kernel[1]},\n"
    "                            {plane, s->dilation[0] * s->padded[1], point ? plane : s->dilation[1]}};\n"
    "  const long inner = in * s->kernel[0] * s->kernel[1];\n"
    "  for (long n = 0; n < s->batch; n++) {\n"
    "    const float *image = conv_pad(s, x + n * s->in * s->height * s->width, s->in, scratch);\n"
    "    for (long g = 0; g < s->groups; g++) {\n"
    "      const tile_matrix m = {w + g * ((out + panel - 1) / panel * panel) * inner, out, inner};\n"
    "      conv_group(s, &steps, image + g * in * plane, &m, bias ? bias + g * out : 0,\n"
    "                 y + (n * s->out + g * out) * s->result[0] * s->result[1]);\n"
    "    }\n"
    "  }\n"
    "}\n"
    "\n";

static const char kernel_depthwise[] =
    "/* A channel of the result, of one channel of the image. */\n"
    "static void conv_plane(const conv_sizes *s, const float *x, const float *w, float bias, float *restrict "
    "y) {\n"
    "  for (long i = 0; i < s->result[0]; i++, y += s->result[1]) {\n"
    "    for (long j = 0; j < s->result[1]; j++) y[j] = bias;\n"
    "    for (long p = 0; p < s->kernel[0]; p++)\n"
    "      for (long q = 0; q < s->kernel[1]; q++) {\n"
    "        const float v = w[p * s->kernel[1] + q];\n"
    "        const float *from = x + (i * s->stride[0] + p * s->dilation[0]) * s->padded[1] + q * "
    "s->dilation[1];\n"
    "        if (s->stride[1] == 1)\n"
    "          for (long j = 0; j < s->result[1]; j++) y[j] += v * from[j];\n"
    "        else\n"
    "          for (long j = 0; j < s->result[1]; j++) y[j] += v * from[j * s->stride[1]];\n"
    "      }\n"
    "  }\n"
    "}\n"
    "\n"
    "static void conv2d_depthwise(const conv_sizes *s, const float *x, const float *w, const float *bias, "
    "float *y,\n"
    "                             float *scratch) {\n"
    "  const long each = s->out / s->in, taps = s->kernel[0] * s->kernel[1];\n"
    "  for (long n = 0; n < s->batch; n++)\n"
    "    for (long o = 0; o < s->out; o++) {\n"
    "      const float *plane = x + (n * s->in + o / each) * s->height * s->width;\n"
    "      conv_plane(s, conv_pad(s, plane, 1, scratch), w + o * taps, bias ? bias[o] : 0.0f,\n"
    "                 y + (n * s->out + o) * s->result[0] * s->result[1]);\n"
    "    }\n"
    "}\n"
    "\n";

static const char kernel_matmul[] =
    "/* y = a m + bias; with `turned`, `a` is stored with its dimensions exchanged. */\n"
    "static void matmul(const float *a, const tile_matrix *m, const float *bias, float *y, long rows, int "
    "turned) {\n"
    "  const tile_steps steps = {{1, 1, m->inner}, {0, 0, turned ? rows : 1}};\n"
    "  float sum[tile_rows][tile_columns];\n"
    "  for (long o = 0; o < m->columns; o += tile_columns)\n"
    "    for (long p = 0; p < rows; p += tile_rows) {\n"
    "      const long n = tile_least(rows - p, tile_rows), c = tile_least(m->columns - o, tile_columns);\n"
    "      const float *x[tile_rows];\n"
    "      for (long k = 0; k < tile_rows; k++) x[k] = a + (p + (k < n ? k : 0)) * (turned ? 1 : m->inner);\n"
    "      tile_multiply(&steps, x, m, o, sum);\n"
    "      for (long k = 0; k < n; k++)\n"
    "        for (long t = 0; t < c; t++) y[(p + k) * m->columns + o + t] = sum[k][t] + (bias ? bias[o + t] "
    ": 0.0f);\n"
    "    }\n"
    "}\n"
    "\n";

#define POOL_HEAD                                                                                            \
  "(const float *x, float *restrict y, long images, long height, long width, long rows,\n"                   \
  "                       long columns, long kernel_h, long kernel_w, long stride_h, long stride_w, long "   \
  "padding_h,\n"                                                                                             \
  "                       long padding_w"
#define POOL_LOOPS                                                                                           \
  "  for (long n = 0; n < images; n++)\n    for (long i = 0; i < rows; i++)\n      for (long j = 0; j < "    \
  "columns; j++) {\n"                                                                                        \
  "        const long top = i * stride_h - padding_h, left = j * stride_w - padding_w;\n"
#define POOL_WINDOW                                                                                          \
  "        for (long p = top < 0 ? 0 : top; p < top + kernel_h && p < height; p++)\n"                        \
  "          for (long q = left < 0 ? 0 : left; q < left + kernel_w && q < width; q++) {\n"                  \
  "            const float v = x[(n * height + p) * width + q];\n"

static const char kernel_max_pool[] =
    "static void max_pool2d" POOL_HEAD ") {\n" POOL_LOOPS "        float s = -INFINITY;\n" POOL_WINDOW
    "            s = v > s || v != v ? v : s;\n          }\n"
    "        y[(n * rows + i) * columns + j] = s;\n      }\n}\n\n";

/* Windows end at the border of the padding, which counts or not. */
static const char kernel_avg_pool[] =
    "static void avg_pool2d" POOL_HEAD ", int whole) {\n" POOL_LOOPS
    "        const long below = height + padding_h, right = width + padding_w;\n"
    "        const long h = (top + kernel_h < below ? top + kernel_h : below) - top;\n"
    "        const long w = (left + kernel_w < right ? left + kernel_w : right) - left;\n"
    "        float s = 0;\n        long count = 0;\n" POOL_WINDOW
    "            s += v;\n            count++;\n          }\n"
    "        y[(n * rows + i) * columns + j] = s / (float)(whole ? h * w : count);\n      }\n}\n\n";

const char *source_kernel(uint32_t kernel) {
  switch (kernel) {
  case SOURCE_TILE: return kernel_tile;
  case SOURCE_PACK: return kernel_pack;
  case SOURCE_CONV_SIZES: return kernel_sizes;
  case SOURCE_CONV: return kernel_conv;
  case SOURCE_DEPTHWISE: return kernel_depthwise;
  case SOURCE_MATMUL: return kernel_matmul;
  case SOURCE_MAX_POOL: return kernel_max_pool;
  default: return kernel_avg_pool;
  }
}
