/* core/formats/other_weights.c: recognizes files by their first bytes. */
#include "core/formats/other_weights.h"

#include <stdbool.h>
#include <string.h>

/* Every command reads FILE and writes FILE.safetensors; "%s" is FILE. */
static const char other_pytorch[] =
    "import torch; from safetensors.torch import save_file; f = '%s'; save_file({k: v.contiguous() for k, v "
    "in "
    "torch.load(f, map_location='cpu', weights_only=True).items()}, f + '.safetensors')";
static const char other_numpy[] = "import numpy; from safetensors.numpy import save_file; f = '%s'; "
                                  "save_file(dict(numpy.load(f)), f + '.safetensors')";
static const char other_onnx[] =
    "import onnx; from onnx.numpy_helper import to_array; from safetensors.numpy import save_file; f = '%s'; "
    "save_file({t.name: to_array(t) for t in onnx.load(f).graph.initializer}, f + '.safetensors')";
static const char other_hdf5[] =
    "import h5py; from safetensors.numpy import save_file; f = '%s'; t = {}; h5py.File(f).visititems(lambda "
    "n, "
    "d: t.update({n.replace('/', '.'): d[()]}) if hasattr(d, 'dtype') else None); save_file(t, f + "
    "'.safetensors')";
typedef struct other_format {
  const char *magic;
  size_t bytes;
  const char *name, *python;
} other_format;

static const other_format other_formats[] = {
    {"PK\x03\x04", 4, "a zip archive, such as PyTorch writes", other_pytorch},
    {"\x80\x02", 2, "a pickle, such as PyTorch wrote before 1.6", other_pytorch},
    {"\x80\x03", 2, "a pickle", other_pytorch},
    {"\x80\x04", 2, "a pickle", other_pytorch},
    {"\x80\x05", 2, "a pickle", other_pytorch},
    {"\x93NUMPY", 6, "an array of NumPy", NULL},
    {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file, such as Keras writes", other_hdf5},
};
static const other_format other_npz = {"", 0, "a .npz archive of NumPy", other_numpy};
static const other_format other_onnx_format = {"", 0, "an ONNX model", other_onnx};

/* Whether the first file of a zip archive is an array of NumPy. */
static bool other_is_npz(const unsigned char *bytes, size_t count) {
  enum { NAME_LENGTH = 26, NAME = 30 };
  if (count < NAME || memcmp(bytes, "PK\x03\x04", 4) != 0) return false;
  size_t n = bytes[NAME_LENGTH] + 256u * bytes[NAME_LENGTH + 1];
  return n >= 4 && n <= count - NAME && memcmp(bytes + NAME + n - 4, ".npy", 4) == 0;
}

/* ONNX has no magic number. A model is a protobuf message that begins with its version (field 1, a small
 * number) and the name of its producer (field 2) or the like. */
static bool other_is_onnx(const unsigned char *bytes, size_t count) {
  enum { VERSION = 0x08, PRODUCER = 0x12, GRAPH = 0x3a, OPSET = 0x42 };
  if (count < 4 || bytes[0] != VERSION || bytes[1] < 1 || bytes[1] > 32) return false;
  return bytes[2] == PRODUCER || bytes[2] == GRAPH || bytes[2] == OPSET;
}

static const other_format *other_find(const unsigned char *bytes, size_t count) {
  if (other_is_npz(bytes, count)) return &other_npz;
  for (size_t i = 0; i < sizeof(other_formats) / sizeof(*other_formats); i++)
    if (count >= other_formats[i].bytes && memcmp(bytes, other_formats[i].magic, other_formats[i].bytes) == 0)
      return &other_formats[i];
  return other_is_onnx(bytes, count) ? &other_onnx_format : NULL;
}

/* The command with the path in it; "%s" stands in it once. */
static tn_status other_fail(const void *handle, const char *path, const other_format *format) {
  if (format->python == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: not a safetensors file, but %s; write one with safetensors.numpy",
                    path, format->name);
  const char *hole = strstr(format->python, "%s");
  return tn_failf(handle, TN_EINVAL,
                  "%s: not a safetensors file, but %s; convert it: python3 -c \"%.*s%s%s\"", path,
                  format->name, (int)(hole - format->python), format->python, path, hole + 2);
}

tn_status tn_refuse_other_weights(const void *handle, const char *path, const unsigned char *bytes,
                                  size_t count) {
  const other_format *format = other_find(bytes, count);
  return format != NULL ? other_fail(handle, path, format) : TN_OK;
}
