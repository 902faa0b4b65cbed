/* core/export/source/kernels.c: the kernels, as the text of the program has them. */
#include "core/export/source/source.h"

/* Four channels by two vectors of a row are summed at a time, in registers. The image is
 * copied with its padding, and rows are longer than it, so that no block needs a check. */
static const char kernel_conv[] =
    "typedef struct conv_sizes {\n"
    "  long batch, in, height, width, out, kernel[2], result[2], stride[2], padding[2], dilation[2], "
    "groups;\n"
    "  long padded, row; /* rows of the padded image, and the elements of one */\n"
    "} conv_sizes;\n\n"
    "static void conv_pad(const conv_sizes *s, const float *x, float *padded) {\n"
    "  memset(padded, 0, sizeof(float) * (size_t)(s->in * s->padded * s->row));\n"
    "  for (long c = 0; c < s->in; c++)\n"
    "    for (long i = 0; i < s->height; i++)\n"
    "      memcpy(padded + (c * s->padded + i + s->padding[0]) * s->row + s->padding[1],\n"
    "             x + (c * s->height + i) * s->width, sizeof(float) * (size_t)s->width);\n"
    "}\n\n"
    "/* Elements of a row that gcc and clang keep in one vector register; a block has two of them. */\n"
    "#if defined(__AVX__)\n"
    "enum { conv_lanes = 8, conv_width = 16 };\n"
    "#else\n"
    "enum { conv_lanes = 4, conv_width = 8 };\n"
    "#endif\n"
    "#if defined(__GNUC__)\n"
    "typedef float conv_vector __attribute__((vector_size(4 * conv_lanes)));\n"
    "#define CONV_ADD(s, w, v) ((s) += (w) * (v))\n"
    "#else\n"
    "typedef struct conv_vector {\n"
    "  float v[conv_lanes];\n"
    "} conv_vector;\n"
    "#define CONV_ADD(s, w, x)                               \\\n"
    "  do {                                                  \\\n"
    "    for (int t = 0; t < conv_lanes; t++) (s).v[t] += (w) * (x).v[t]; \\\n"
    "  } while (0)\n"
    "#endif\n\n"
    "/* A block of a row, of the channels with kernels w[0] to w[3]. */\n"
    "static void conv_block(const conv_sizes *s, const float *x, const float *const w[4], float "
    "sum[4][conv_width]) "
    "{\n"
    "  conv_vector s0, s1, s2, s3, s4, s5, s6, s7;\n"
    "  const long in = s->in / s->groups, step = s->stride[1];\n"
    "  long k = 0;\n"
    "  memset(&s0, 0, sizeof s0);\n"
    "  s1 = s2 = s3 = s4 = s5 = s6 = s7 = s0;\n"
    "  for (long c = 0; c < in; c++)\n"
    "    for (long i = 0; i < s->kernel[0]; i++)\n"
    "      for (long j = 0; j < s->kernel[1]; j++, k++) {\n"
    "        const float *v = x + (c * s->padded + i * s->dilation[0]) * s->row + j * s->dilation[1];\n"
    "        conv_vector left, right;\n"
    "        float block[conv_width];\n"
    "        if (step != 1) {\n"
    "          for (int t = 0; t < conv_width; t++) block[t] = v[t * step];\n"
    "          v = block;\n"
    "        }\n"
    "        memcpy(&left, v, sizeof left);\n"
    "        memcpy(&right, v + conv_lanes, sizeof right);\n"
    "        CONV_ADD(s0, w[0][k], left);\n"
    "        CONV_ADD(s1, w[0][k], right);\n"
    "        CONV_ADD(s2, w[1][k], left);\n"
    "        CONV_ADD(s3, w[1][k], right);\n"
    "        CONV_ADD(s4, w[2][k], left);\n"
    "        CONV_ADD(s5, w[2][k], right);\n"
    "        CONV_ADD(s6, w[3][k], left);\n"
    "        CONV_ADD(s7, w[3][k], right);\n"
    "      }\n"
    "  memcpy(sum[0], &s0, sizeof s0);\n"
    "  memcpy(sum[0] + conv_lanes, &s1, sizeof s1);\n"
    "  memcpy(sum[1], &s2, sizeof s2);\n"
    "  memcpy(sum[1] + conv_lanes, &s3, sizeof s3);\n"
    "  memcpy(sum[2], &s4, sizeof s4);\n"
    "  memcpy(sum[2] + conv_lanes, &s5, sizeof s5);\n"
    "  memcpy(sum[3], &s6, sizeof s6);\n"
    "  memcpy(sum[3] + conv_lanes, &s7, sizeof s7);\n"
    "}\n\n"
    "/* Up to four channels of a group, from channel o on. */\n"
    "static void conv_channels(const conv_sizes *s, const float *x, const float *w, const float *bias, float "
    "*y,\n"
    "                          long o, long n) {\n"
    "  const long taps = s->in / s->groups * s->kernel[0] * s->kernel[1], image = s->result[0] * "
    "s->result[1];\n"
    "  const float *rows[4];\n"
    "  float sum[4][conv_width];\n"
    "  for (long k = 0; k < 4; k++) rows[k] = w + (o + (k < n ? k : 0)) * taps;\n"
    "  for (long i = 0; i < s->result[0]; i++)\n"
    "    for (long j = 0; j < s->result[1]; j += conv_width) {\n"
    "      const long m = s->result[1] - j < conv_width ? s->result[1] - j : conv_width;\n"
    "      conv_block(s, x + i * s->stride[0] * s->row + j * s->stride[1], rows, sum);\n"
    "      for (long k = 0; k < n; k++)\n"
    "        for (long t = 0; t < m; t++)\n"
    "          y[(o + k) * image + i * s->result[1] + j + t] = sum[k][t] + (bias ? bias[o + k] : 0.0f);\n"
    "    }\n"
    "}\n\n"
    "static void conv2d(const conv_sizes *s, const float *x, const float *w, const float *bias, float *y,\n"
    "                   float *scratch) {\n"
    "  const long out = s->out / s->groups, in = s->in / s->groups;\n"
    "  for (long n = 0; n < s->batch; n++) {\n"
    "    conv_pad(s, x + n * s->in * s->height * s->width, scratch);\n"
    "    for (long g = 0; g < s->groups; g++)\n"
    "      for (long o = 0; o < out; o += 4)\n"
    "        conv_channels(s, scratch + g * in * s->padded * s->row, w, bias,\n"
    "                      y + n * s->out * s->result[0] * s->result[1], g * out + o, out - o < 4 ? out - o "
    ": 4);\n"
    "  }\n"
    "}\n\n";

static const char kernel_matmul[] =
    "/* Eight partial sums, which compilers keep in a vector. */\n"
    "static float matmul_dot(const float *a, const float *b, long n) {\n"
    "  float s[8] = {0}, sum = 0;\n"
    "  const long whole = n / 8 * 8;\n"
    "  for (long i = 0; i < whole; i += 8)\n"
    "    for (int t = 0; t < 8; t++) s[t] += a[i + t] * b[i + t];\n"
    "  for (int t = 0; t < 8; t++) sum += s[t];\n"
    "  for (long i = whole; i < n; i++) sum += a[i] * b[i];\n"
    "  return sum;\n"
    "}\n\n"
    "/* y = a b + bias; a transposed matrix is stored with its dimensions exchanged. */\n"
    "static void matmul(const float *a, const float *b, const float *bias, float *restrict y, long rows, "
    "long columns,\n"
    "                   long inner, int turned_a, int turned_b) {\n"
    "  for (long i = 0; i < rows; i++) {\n"
    "    float *restrict to = y + i * columns;\n"
    "    for (long j = 0; j < columns; j++) to[j] = bias ? bias[j] : 0.0f;\n"
    "    if (turned_b && !turned_a) {\n"
    "      for (long j = 0; j < columns; j++) to[j] += matmul_dot(a + i * inner, b + j * inner, inner);\n"
    "      continue;\n"
    "    }\n"
    "    for (long k = 0; k < inner; k++) {\n"
    "      const float v = turned_a ? a[k * rows + i] : a[i * inner + k];\n"
    "      if (turned_b)\n"
    "        for (long j = 0; j < columns; j++) to[j] += v * b[j * inner + k];\n"
    "      else\n"
    "        for (long j = 0; j < columns; j++) to[j] += v * b[k * columns + j];\n"
    "    }\n"
    "  }\n"
    "}\n\n";

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
  case SOURCE_CONV: return kernel_conv;
  case SOURCE_MATMUL: return kernel_matmul;
  case SOURCE_MAX_POOL: return kernel_max_pool;
  default: return kernel_avg_pool;
  }
}
