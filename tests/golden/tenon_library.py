"""libtenon of a build, called through ctypes: imports models of ONNX and runs configurations."""
import ctypes
import json
import pathlib

import numpy as np

DTYPES = {1: np.bool_, 2: np.uint8, 3: np.int32, 4: np.int64, 5: np.float16, 7: np.float32, 8: np.float64, 9: np.int8}
NONFINITE = 10
INPUT, OUTPUT = 0, 1


class Refused(Exception):
    """A call that failed; the text is its message."""


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 8)]


class Field(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("role", ctypes.c_int32), ("name", ctypes.c_char_p), ("type", Type)]


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("train", ctypes.c_int32), ("eval", ctypes.c_int32), ("infer", ctypes.c_int32),
                ("batch", ctypes.c_int64), ("steps", ctypes.c_int64), ("steps_per_epoch", ctypes.c_int64), ("weights", ctypes.c_char_p)]


class ImportOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("n_constants", ctypes.c_int32), ("constants", ctypes.POINTER(ctypes.c_char_p)),
                ("flat", ctypes.c_int32)]


class RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("set", ctypes.POINTER(ctypes.c_char_p)), ("n_set", ctypes.c_int32)]


def plain(array):
    """An array as Tenon keeps it: floats are f32, whole numbers of 16 bits i32, and those without a sign i64."""
    name = array.dtype.name
    if name.startswith("float8") or name.startswith("float4"):
        return array.astype(np.float32)
    if name in ("int4", "int2", "uint4", "uint2"):
        return array.astype(np.int8 if name[0] == "i" else np.uint8)
    if name in ("bfloat16", "float16", "float64"):
        return array.astype(np.float32)
    return array.astype({"uint16": np.int32, "int16": np.int32, "uint32": np.int64, "uint64": np.int64}.get(name, array.dtype))


class Library:
    def __init__(self, build):
        self.c = ctypes.CDLL(str(pathlib.Path(build) / "libtenon.so"))
        self.c.tn_error_text.restype = ctypes.c_char_p
        self.c.tn_error_text.argtypes = [ctypes.c_void_p]
        self.context = ctypes.c_void_p()
        self.check(self.c.tn_context_open(None, ctypes.byref(self.context)), self.context)

    def check(self, status, handle):
        if status != 0:
            raise Refused(self.c.tn_error_text(handle).decode(errors="replace"))

    def import_onnx(self, path, configuration, constants=(), flat=False):
        """The result of tn_import_onnx; constants are "NAME=FILE.npy"; flat: without blocks."""
        texts = (ctypes.c_char_p * max(len(constants), 1))(*(c.encode() for c in constants))
        options = ImportOptions(ctypes.sizeof(ImportOptions), len(constants), texts, flat)
        text = ctypes.c_char_p()
        self.check(self.c.tn_import_onnx(self.context, str(path).encode(), str(configuration).encode(), ctypes.byref(options),
                                         ctypes.byref(text)), self.context)
        result = json.loads(text.value)
        self.c.tn_string_free(self.context, text)
        return result

    def open(self, configuration, batch, overrides=(), train=False, infer=True):
        return Session(self, configuration, batch, overrides, train, infer)


class Session:
    def __init__(self, library, configuration, batch, overrides, train, infer):
        self.library, self.run, self.session = library, ctypes.c_void_p(), ctypes.c_void_p()
        texts = (ctypes.c_char_p * max(len(overrides), 1))(*(o.encode() for o in overrides))
        options = RunOptions(ctypes.sizeof(RunOptions), texts, len(overrides))
        library.check(library.c.tn_run_open(library.context, str(configuration).encode(), ctypes.byref(options), ctypes.byref(self.run)),
                      library.context)
        options = SessionOptions(ctypes.sizeof(SessionOptions), train, 0, infer, batch)
        try:
            library.check(library.c.tn_session_open(self.run, ctypes.byref(options), ctypes.byref(self.session)), self.run)
        except Refused:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.library.c.tn_session_close(self.session)
        self.library.c.tn_run_close(self.run)

    def fields(self, role):
        found, index = [], 0
        while True:
            field = Field(ctypes.sizeof(Field))
            if self.library.c.tn_session_describe(self.session, index, ctypes.byref(field)) != 0:
                return found
            if field.role == role:
                found.append((field.name, DTYPES[field.type.dtype], tuple(field.type.dims[:field.type.rank])))
            index += 1

    def bind(self, name, array):
        self.library.check(self.library.c.tn_session_bind(self.session, name, array.ctypes.data_as(ctypes.c_void_p),
                                                          ctypes.c_size_t(array.nbytes)), self.session)

    def bind_inputs(self, arrays):
        """Arrays by the order of the inputs, or by name."""
        self.inputs = []
        for i, (name, dtype, shape) in enumerate(self.fields(INPUT)):
            given = arrays.get(name.decode()) if isinstance(arrays, dict) else arrays[i] if i < len(arrays) else None
            if given is None:
                continue
            if given.shape != shape:
                raise Refused(f"input {name.decode()} has the shape {given.shape}, expected {shape}")
            self.inputs.append(np.ascontiguousarray(given, dtype=dtype).reshape(shape))
            self.bind(name, self.inputs[-1])

    def infer(self, arrays):
        """The outputs, in their order."""
        self.bind_inputs(arrays)
        outputs = [(name, np.zeros(shape, dtype)) for name, dtype, shape in self.fields(OUTPUT)]
        for name, array in outputs:
            self.bind(name, array)
        status = self.library.c.tn_session_infer(self.session, ctypes.c_int64(0))
        if status != NONFINITE:
            self.library.check(status, self.session)
        return [array for _, array in outputs]

    def train(self):
        """The loss of one step of the optimizer on the bound inputs."""
        self.library.check(self.library.c.tn_session_train(self.session, ctypes.c_int64(0)), self.session)
        value = ctypes.c_double()
        self.library.check(self.library.c.tn_session_metric(self.session, b"loss", ctypes.byref(value)), self.session)
        return value.value
